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

#include "base/syscall.h"
#include "base/utf8.h"

namespace belljar::server {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxText = 2000;      // of one value
constexpr std::size_t kMaxItems = 100;      // of one list or object
constexpr std::size_t kShortestSecret = 6;  // a shorter value stands everywhere by chance
constexpr int kMaxDepth = 8;
constexpr std::size_t kMaxArguments = 16 << 10;  // of one call: a line must not push out others
constexpr const char* kMasked = "***";

struct Rule {
  const char* pattern;
  const char* instead;
};

// Forms that services give their tokens, and places where people put secrets.
constexpr Rule kRules[] = {
    {R"((?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----.*?)"
     R"((-----END [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----|$))",
     "***"},
    {R"((?i)\bAGE-SECRET-KEY-1[a-z0-9]{20,})", "***"},
    // Before the single schemes: whatever the scheme is, all of a header goes.
    {R"((?i)\b((?:proxy-)?authorization|(?:set-)?cookie)(["']?\s*[:=]\s*))"
     R"(("[^"]*"|'[^']*'|[^"'\r\n]+))",
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
     R"(\w*["']?\s*[=:]\s*)("[^"]*"|'[^']*'|[^\s"',;&]+))",
     "\\1***"},
    // Given to a program: curl -u me:…, --password …, sshpass -p …
    {R"((\bcurl\b[^\n]*?\s(?:-u|--user|--proxy-user)[=\s]\s*["']?[^\s:"'/]+:)[^\s"']+)", "\\1***"},
    {R"((?i)(--(?:password|passwd|passphrase|token|secret|api-?key|access-?key)\s+))"
     R"(("[^"]*"|'[^']*'|[^\s"'-][^\s"']*))",
     "\\1***"},
    {R"((\bsshpass\s+-p\s*)("[^"]*"|'[^']*'|[^\s"']+))", "\\1***"},
};

const std::vector<std::pair<std::unique_ptr<RE2>, std::string>>& rules() {
  static const auto kCompiled = [] {
    std::vector<std::pair<std::unique_ptr<RE2>, std::string>> all;
    for (const Rule& rule : kRules)
      all.emplace_back(std::make_unique<RE2>(rule.pattern, RE2::Quiet), rule.instead);
    return all;
  }();
  return kCompiled;
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
  if (text.size() <= kMaxText && all <= kMaxText * 8) return text;
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
  json::value all = masked(value, 0);
  const std::string text = json::serialize(all);
  if (text.size() <= kMaxArguments) return all;
  return json::value(repair_utf8(text.substr(0, kMaxArguments)) + "… (" +
                     std::to_string(text.size()) + " bytes)");
}

json::value Mask::masked(const json::value& value, int depth) const {
  if (depth > kMaxDepth) return "…";
  // Masked before it is cut, or half a secret would stand at the end.
  if (const json::string* one = value.if_string())
    return json::value(shortened(text(std::string(one->subview(0, kMaxText * 8))), one->size()));
  if (const json::array* list = value.if_array()) {
    json::array copy;
    for (std::size_t i = 0; i < std::min(list->size(), kMaxItems); ++i)
      copy.push_back(masked((*list)[i], depth + 1));
    if (list->size() > kMaxItems) copy.emplace_back("…");
    return copy;
  }
  const json::object* object = value.if_object();
  if (object == nullptr) return value;
  json::object copy;
  for (const auto& member : *object) {
    if (copy.size() == kMaxItems) break;
    const bool environment = member.key() == "environment" || member.key() == "env";
    const json::object* variables = environment ? member.value().if_object() : nullptr;
    if (variables == nullptr) {
      copy[text(std::string(member.key()))] = masked(member.value(), depth + 1);
      continue;
    }
    json::object names;
    for (const auto& variable : *variables) names[variable.key()] = kMasked;
    copy[member.key()] = std::move(names);
  }
  return copy;
}

// ---- the file -----------------------------------------------------------------

Result<Audit> Audit::open(AuditSettings settings, Mask mask) {
  Audit audit;
  audit.settings_ = std::move(settings);
  audit.mask_ = std::move(mask);
  if (!audit.settings_.file.empty()) TRY(audit.reopen());
  return audit;
}

Status Audit::reopen() {
  // Not through a symlink that somebody left there, and no FIFO that would hold us.
  const int fd = ::open(settings_.file.c_str(),
                        O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
  if (fd < 0) return fail("open " + settings_.file, errno);
  file_ = Fd(fd);
  struct stat about{};
  if (::fstat(fd, &about) < 0 || !S_ISREG(about.st_mode))
    return fail(settings_.file + " is no regular file");
  size_ = static_cast<std::uint64_t>(about.st_size);
  return {};
}

void Audit::rotate() {
  auto numbered = [&](unsigned number) {
    return number == 0 ? settings_.file : settings_.file + "." + std::to_string(number);
  };
  // What is not there is not renamed; the oldest is written over.
  for (unsigned number = settings_.keep; number > 0; --number)
    (void)::rename(numbered(number - 1).c_str(), numbered(number).c_str());
  if (settings_.keep == 0) (void)::unlink(settings_.file.c_str());
  if (!reopen()) file_ = Fd();
}

void Audit::write(json::object event) {
  if (settings_.file.empty()) return;
  json::object whole{{"time", now()}};
  for (auto& member : event) whole[member.key()] = std::move(member.value());
  const std::string line = json::serialize(whole) + "\n";
  if (size_ > 0 && size_ + line.size() > settings_.max_bytes) rotate();
  const bool written = file_ && retry([&] {
                                  return ::write(file_.get(), line.data(), line.size());
                                }) == static_cast<ssize_t>(line.size());
  if (written)
    size_ += line.size();
  else
    ++lost_;
}

}  // namespace belljar::server
