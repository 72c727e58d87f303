#include "server/tokens.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <optional>
#include <sstream>

#include "base/fd.h"
#include "base/file.h"
#include "base/random.h"
#include "base/sha256.h"
#include "server/secret.h"

namespace belljar::server {
namespace {

constexpr std::size_t kMaxFile = 1 << 20;
constexpr std::array kRights = {Right::dispatch, Right::read, Right::run, Right::approve,
                                Right::admin};

std::optional<Right> find_right(std::string_view text) {
  for (Right right : kRights)
    if (name(right) == text) return right;
  return std::nullopt;
}

Result<std::set<Right>> parse_rights(std::string_view text) {
  std::set<Right> rights;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(','));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    const std::optional<Right> right = find_right(word);
    if (!right)
      return fail("unknown scope " + std::string(word), 0, "run, approve, read, admin, dispatch");
    rights.insert(*right);
  }
  return rights;
}

Status check_mode(const std::string& path) {
  struct stat found{};
  if (::stat(path.c_str(), &found) < 0) return fail("look at " + path, errno);
  if ((found.st_mode & 077U) != 0)
    return fail("others can read the tokens in " + path, 0,
                "chmod 600 " + path + ", and make new tokens if it was so for long");
  return {};
}

// It has all of its text before it has its name: of two servers that start at once, one makes it
// and both read the same.
Status make_file(const std::string& path, std::string_view text) {
  constexpr const char* kHint = "make its folder first, or name another with --token-file";
  const std::string fresh = path + "." + random_hex(8);
  const Fd file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) return fail("make " + path, errno, kHint);
  const bool written =
      ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const bool made = written && (::link(fresh.c_str(), path.c_str()) == 0 || errno == EEXIST);
  const int err = errno;
  (void)::unlink(fresh.c_str());  // it has its own name now, or is none
  if (!made) return fail("make " + path, err, kHint);
  return {};
}

}  // namespace

std::string_view name(Right right) {
  switch (right) {
    case Right::none:
      return "none";
    case Right::dispatch:
      return "dispatch";
    case Right::read:
      return "read";
    case Right::run:
      return "run";
    case Right::approve:
      return "approve";
    case Right::admin:
      return "admin";
  }
  return "?";
}

bool Principal::may(Right right) const {
  if (right == Right::none || rights.contains(right) || rights.contains(Right::admin)) return true;
  if (right == Right::read) return rights.contains(Right::run) || rights.contains(Right::approve);
  return right == Right::dispatch && rights.contains(Right::run);
}

std::string make_token() { return "bj_" + random_hex(32); }

Result<Tokens> Tokens::parse(std::string_view text, std::string_view file) {
  Tokens tokens;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::istringstream in(line);
    std::vector<std::string> words;
    for (std::string word; in >> word;) words.push_back(word);
    if (words.empty() || words[0].starts_with('#')) continue;
    const std::string where = std::string(file) + ":" + std::to_string(number) + ": ";
    if (words.size() == 1) words.insert(words.begin(), {"token", "admin"});
    if (words.size() != 3) return fail(where + "this is no token", 0, "NAME SCOPE[,SCOPE] TOKEN");
    if (words[2].size() < kLeastToken)
      return fail(where + "the token is too short", 0, "at least 16 characters, from a generator");
    // uid:N is what the kernel calls a peer.
    if (words[0].starts_with("uid:"))
      return fail(where + "a name does not begin with uid:", 0, "choose another name");
    // NAME@TOKEN is a part of addresses.
    if (words[0].find('/') != std::string::npos)
      return fail(where + "a name has no /", 0, "choose another name");
    Result<std::set<Right>> rights = parse_rights(words[1]);
    if (!rights) return fail(where + rights.error().what, 0, rights.error().hint);
    for (const Entry& entry : tokens.entries_)
      if (entry.principal.name == words[0])
        return fail(where + "there is a token " + words[0] + " already", 0, "choose another name");
    Principal principal{.name = words[0], .rights = std::move(*rights), .session = {}};
    tokens.entries_.push_back({sha256_hex(words[2]), std::move(principal)});
    if (tokens.entries_.size() > kMaxTokens) return fail(where + "these are too many tokens");
  }
  if (tokens.entries_.empty())
    return fail("there is no token in " + std::string(file), 0,
                "remove the file, and the next start makes one with a fresh token; or write a line "
                "NAME SCOPE[,SCOPE] TOKEN");
  return tokens;
}

Result<Tokens> Tokens::read(const std::string& path) {
  TRY(check_mode(path));
  const Result<std::string> text = read_regular(path, kMaxFile);
  if (!text)
    return fail(text.error().what, text.error().err,
                "the tokens must be readable by the user who runs the server: chown it, or name "
                "another with --token-file");
  return parse(*text, path);
}

Result<Tokens> Tokens::read_or_make(const std::string& path) {
  struct stat found{};
  if (::stat(path.c_str(), &found) == 0) return read(path);
  const std::string token = make_token();
  TRY(make_file(path, "default admin " + token + "\n"));
  return read(path);
}

const Principal* Tokens::find(std::string_view token) const {
  const std::string hash = sha256_hex(token);
  const Principal* found = nullptr;
  for (const auto* list : {&entries_, &dispatch_})
    for (const Entry& entry : *list)
      if (same_secret(entry.hash, hash)) found = &entry.principal;
  return found;
}

bool Tokens::may(const std::string& name, Right right) const {
  return name.starts_with("uid:") || std::ranges::any_of(entries_, [&](const Entry& entry) {
           return entry.principal.name == name && entry.principal.may(right);
         });
}

Result<std::string> Tokens::add_dispatch(const std::string& owner, const std::string& session) {
  std::string token = make_token();
  // One address at a time for each: a new one ends the old.
  std::erase_if(dispatch_, [&](const Entry& entry) {
    return entry.principal.session == session && entry.principal.name == owner;
  });
  Principal principal{.name = owner, .rights = {Right::dispatch}, .session = session};
  dispatch_.push_back({sha256_hex(token), std::move(principal)});
  return token;
}

void Tokens::remove_dispatch(const std::string& session) {
  std::erase_if(dispatch_, [&](const Entry& e) { return e.principal.session == session; });
}

bool Tokens::has_at_least(const Entry& entry) const {
  return std::ranges::any_of(entries_, [&](const Entry& mine) {
    const auto keeps = [&](Right right) { return mine.principal.may(right); };
    return mine.principal.name == entry.principal.name && mine.hash == entry.hash &&
           std::ranges::all_of(entry.principal.rights, keeps);
  });
}

std::set<std::string> Tokens::replace(Tokens fresh) {
  std::set<std::string> lost;
  for (const Entry& before : entries_)
    if (!fresh.has_at_least(before)) lost.insert(before.principal.name);
  entries_ = std::move(fresh.entries_);
  // An address is worth no more than the token that made it.
  std::erase_if(dispatch_, [&](const Entry& entry) {
    const std::string& owner = entry.principal.name;
    return lost.contains(owner) || !may(owner, Right::dispatch);
  });
  return lost;
}

}  // namespace belljar::server
