#include "server/audit.h"

#include <fcntl.h>
#include <re2/re2.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <memory>

#include "base/sha256.h"
#include "base/syscall.h"
#include "base/utf8.h"

namespace belljar::server {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxText = 2000;      // of one value
constexpr std::size_t kMaxSeen = 16'000;    // of one value, to mask what is in it
constexpr std::size_t kMaxItems = 100;      // of one list or object
constexpr std::size_t kShortestSecret = 6;  // a shorter value stands everywhere by chance
constexpr int kMaxDepth = 8;
constexpr std::size_t kMaxArguments = 16 << 10;  // of one call: a line must not push out others
constexpr std::size_t kMaxSeenArguments = 4 * kMaxArguments;  // of one call, as kMaxSeen
constexpr const char* kMasked = "***";

struct Rule {
  const char* pattern;
  const char* instead;
};

// Forms that services give their tokens, and places where people put secrets.
constexpr Rule kRules[] = {
    // To its end, or as far as it looks like a key: what follows may be code.
    {R"(-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----(?:\s|\\[nr]|[\w-]+: [^\n]*\n|[\w+/=]+)*)"
     R"((?:-----END [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----)?)",
     "***"},
    {R"((?i)\bAGE-SECRET-KEY-1[a-z0-9]{20,})", "***"},
    // Before the single schemes: whatever the scheme is, all of a header goes. Where it stands
    // in no quotes, it ends where a command would begin.
    {R"((?i)\b((?:proxy-)?authorization|(?:set-)?cookie)(["']?\s*[:=]\s*))"
     R"(("[^"]*"|'[^']*'|[^\s"';|&$`()]+(?:[ ,;]+[^\s"';|&$`()=]+=[^\s"';|&$`()]+|)"
     R"( [^\s"';|&$`()]+)*))",
     "\\1\\2***"},
    {R"(\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*)", "***"},
    {R"(\b(sk|pk|rk)[-_][A-Za-z0-9_-]{16,})", "***"},
    {R"(\b(gh[pousr]_|github_pat_|npm_|pypi-|hf_|dckr_pat_|dop_v1_|dapi|whsec_|shpat_|lin_api_))"
     R"([A-Za-z0-9_-]{10,})",
     "***"},
    {R"(\bgl(?:pat|ptt|dt|rt|cbt|soat|ft|imt|agent|oas|ffct)-[A-Za-z0-9_.-]{10,})", "***"},
    {R"(\b(xox[a-z]|xapp)-[A-Za-z0-9-]{10,})", "***"},
    {R"((hooks\.slack\.com/(?:services|workflows)/)[A-Za-z0-9/_-]+)", "\\1***"},
    {R"(\b(AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b)", "***"},
    {R"(\bAIza[A-Za-z0-9_-]{30,})", "***"},
    {R"(\bya29\.[A-Za-z0-9_-]{10,})", "***"},
    {R"(\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,})", "***"},
    {R"((?i)\b((?:Account|SharedAccess)Key=)[A-Za-z0-9+/=]{16,})", "\\1***"},
    {R"((?i)\b(bearer|basic)\s+[A-Za-z0-9+/_.=-]{8,})", "\\1 ***"},
    {R"((?i)(://[^\s/:@]*:)[^\s/@]+@)", "\\1***@"},
    {R"((?i)((?:password|passwd|passphrase|secret|token|api_?-?key|access_?key|credential)s?)"
     // What a shell would run in it is no secret, but what was done.
     R"(\w*["']?\s*[=:]\s*)("(?:[^"$`]|\$[^"`(])*"|'[^']*'|[^\s"',;&`(]+))",
     "\\1***"},
    // Given to a program: curl -u me:…, --password …, sshpass -p …
    {R"((\bcurl\b[^\n]*?\s(?:-u|--user|--proxy-user)[=\s]\s*["']?[^\s:"'/]+:)[^\s"']+)", "\\1***"},
    {R"((?i)(--(?:password|passwd|passphrase|token|secret|api-?key|access-?key)\s+))"
     R"(("[^"]*"|'[^']*'|[^\s"'-][^\s"']*))",
     "\\1***"},
    {R"((\bsshpass\s+-p\s*)("[^"]*"|'[^']*'|[^\s"']+))", "\\1***"},
};

const std::vector<std::pair<std::unique_ptr<RE2>, std::string>>& rules() {
  static const auto compiled = [] {
    std::vector<std::pair<std::unique_ptr<RE2>, std::string>> all;
    for (const Rule& rule : kRules)
      all.emplace_back(std::make_unique<RE2>(rule.pattern, RE2::Quiet), rule.instead);
    return all;
  }();
  return compiled;
}

std::string now() {
  using std::chrono::milliseconds;
  const auto time = std::chrono::system_clock::now();
  const auto ms = std::chrono::duration_cast<milliseconds>(time.time_since_epoch()).count() % 1000;
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::string fraction = std::to_string(1000 + ms).substr(1);
  return std::string(text.data(), length) + "." + fraction + "Z";
}

// `all`: how long it was before anything was done to it.
std::string shortened(std::string text, std::size_t all) {
  if (text.size() <= kMaxText && all <= kMaxSeen) return text;
  text.resize(std::min(text.size(), kMaxText));
  return repair_utf8(text) + "… (" + std::to_string(all) + " bytes)";
}

void replace_all(std::string& text, std::string_view what) {
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 3))
    text.replace(at, what.size(), kMasked);
}

}  // namespace

Mask::Mask(std::vector<std::string> values) : values_(std::move(values)) {
  std::erase_if(values_, [](const std::string& value) { return value.size() < kShortestSecret; });
  // The longer first: one may be a part of another.
  std::ranges::sort(values_, std::greater<>(), &std::string::size);
}

std::string Mask::text(std::string text) const {
  for (const std::string& value : values_) replace_all(text, value);
  for (const auto& [pattern, instead] : rules()) RE2::GlobalReplace(&text, *pattern, instead);
  return text;
}

json::value Mask::arguments(const json::value& value) const {
  std::size_t room = kMaxSeenArguments;
  json::value all = masked(value, 0, room);
  const std::string text = json::serialize(all);
  if (text.size() <= kMaxArguments) return all;
  return json::value(repair_utf8(text.substr(0, kMaxArguments)) + "… (it was longer)");
}

// Masked before it is cut, or half a secret would stand at the end.
std::string Mask::masked(std::string_view one, std::size_t& room) const {
  // What is left of the room may end within a secret.
  if (one.size() > room && room < kMaxSeen) room = 0;
  const std::string_view seen = one.substr(0, std::min(room, kMaxSeen));
  room -= seen.size();
  if (seen.empty() && !one.empty()) return "… (" + std::to_string(one.size()) + " bytes)";
  return shortened(text(std::string(seen)), one.size());
}

json::value Mask::masked(const json::value& value, int depth, std::size_t& room) const {
  if (depth > kMaxDepth || room == 0) return "…";
  if (const json::string* one = value.if_string()) return json::value(masked(*one, room));
  if (const json::array* list = value.if_array()) {
    json::array copy;
    for (std::size_t i = 0; i < std::min(list->size(), kMaxItems) && room > 0; ++i)
      copy.push_back(masked((*list)[i], depth + 1, room));
    if (list->size() > copy.size()) copy.emplace_back("…");
    return copy;
  }
  const json::object* object = value.if_object();
  if (object == nullptr) return value;
  json::object copy;
  for (const auto& member : *object) {
    if (copy.size() == kMaxItems || room == 0) break;
    const std::string key = masked(member.key(), room);
    const bool environment = member.key() == "environment" || member.key() == "env";
    const json::object* variables = environment ? member.value().if_object() : nullptr;
    if (variables == nullptr) {
      copy[key] = masked(member.value(), depth + 1, room);
      continue;
    }
    json::object names;
    for (const auto& variable : *variables) {
      if (names.size() == kMaxItems) break;
      names[variable.key().substr(0, kMaxText)] = kMasked;
    }
    copy[key] = std::move(names);
  }
  return copy;
}

// ---- the file -----------------------------------------------------------------

namespace {

// A name is made up by people, and is no path.
std::string as_file_name(const std::string& name) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  constexpr std::size_t kLongest = 100;
  std::string text;
  for (char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_';
    if (plain)
      text.push_back(c);
    else
      text.append("%").append(1, kDigits[byte >> 4U]).append(1, kDigits[byte & 0xfU]);
  }
  return text.size() <= kLongest ? text : sha256_hex(name);
}

// /x/audit.jsonl, ann: /x/audit.ann.jsonl
std::string path_for(const std::string& file, const std::string& principal) {
  // Who comes by the local socket is the person, or root.
  if (principal.empty() || principal.starts_with("uid:")) return file;
  const std::size_t name = file.rfind('/') + 1;  // 0 if there is none
  const std::size_t dot = file.rfind('.');
  const std::size_t at = dot == file.npos || dot <= name ? file.size() : dot;
  return file.substr(0, at) + "." + as_file_name(principal) + file.substr(at);
}

// What a client may make as long as it likes, besides what was cut already.
void cut(json::object& event) {
  for (auto& member : event) {
    const bool was_cut = member.key() == "arguments" || member.key() == "message";
    const json::string* text = member.value().if_string();
    if (text == nullptr || text->size() <= (was_cut ? 2 * kMaxArguments : kMaxText)) continue;
    member.value() =
        repair_utf8(text->subview(0, kMaxText)) + "… (" + std::to_string(text->size()) + " bytes)";
  }
}

}  // namespace

Result<Audit> Audit::open(AuditSettings settings, Mask mask) {
  Audit audit;
  audit.settings_ = std::move(settings);
  audit.mask_ = std::move(mask);
  if (!audit.settings_.file.empty()) TRY(reopen(audit.trail_of("")));
  return audit;
}

Audit::Trail& Audit::trail_of(const std::string& principal) {
  std::string path = path_for(settings_.file, principal);
  Trail& trail = trails_[path];
  trail.path = std::move(path);
  return trail;
}

Status Audit::reopen(Trail& trail) {
  trail.file = Fd();
  // Not through a symlink that somebody left there, and no FIFO that would hold us.
  Fd file(::open(trail.path.c_str(),
                 O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (!file) return fail("open " + trail.path, errno);
  struct stat about{};
  if (::fstat(file.get(), &about) < 0 || !S_ISREG(about.st_mode))
    return fail(trail.path + " is no regular file");
  char last = '\n';
  if (about.st_size > 0) (void)::pread(file.get(), &last, 1, about.st_size - 1);  // or it is whole
  trail.file = std::move(file);
  trail.size = static_cast<std::uint64_t>(about.st_size);
  trail.is_torn = last != '\n';
  return {};
}

void Audit::rotate(Trail& trail) const {
  auto numbered = [&](unsigned number) {
    return number == 0 ? trail.path : trail.path + "." + std::to_string(number);
  };
  // What is not there is not renamed; the oldest is written over.
  for (unsigned number = settings_.keep; number > 0; --number)
    (void)::rename(numbered(number - 1).c_str(), numbered(number).c_str());
  if (settings_.keep == 0) (void)::unlink(trail.path.c_str());
  trail.file = Fd();
  trail.size = 0;
}

void Audit::write(json::object event) {
  if (settings_.file.empty()) return;
  cut(event);
  const json::value* principal = event.if_contains("principal");
  const bool named = principal != nullptr && principal->is_string();
  Trail& trail = trail_of(named ? std::string(principal->get_string()) : std::string());
  json::object whole{{"time", now()}};
  for (auto& member : event) whole[member.key()] = std::move(member.value());
  std::string line = json::serialize(whole) + "\n";
  if (!trail.file) (void)reopen(trail);  // then it is lost
  if (trail.size > 0 && trail.size + line.size() > settings_.max_bytes) {
    rotate(trail);
    (void)reopen(trail);
  }
  if (trail.is_torn) line.insert(line.begin(), '\n');
  const bool written = trail.file && retry([&] {
                                       return ::write(trail.file.get(), line.data(), line.size());
                                     }) == static_cast<ssize_t>(line.size());
  trail.is_torn = false;
  if (written) {
    trail.size += line.size();
    return;
  }
  ++lost_;
  trail.file = Fd();  // whoever opens it again sees what there is of the line
}

}  // namespace belljar::server
