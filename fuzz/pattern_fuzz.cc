// Any bytes: the first line is a path, the second an expression, the rest a .gitignore whose lines
// are also patterns. Nothing crashes or takes long; a pattern agrees with a plain matcher that
// tries everything; what a pattern matches, it reaches; a required text is really required.
#include <re2/re2.h>

#include <cstdlib>

#include "tools/ignore.h"
#include "tools/needle.h"
#include "tools/path_rules.h"

namespace belljar::tools {
namespace {

void must(bool true_or_bug) {
  if (!true_or_bug) std::abort();
}

// `*`, `?`, `**` and literal characters, by trying everything; short texts only.
bool plain_match(std::string_view pattern, std::string_view path) {
  if (pattern == "**") return !path.empty();
  if (pattern.starts_with("**/")) {
    if (plain_match(pattern.substr(3), path)) return true;
    const std::size_t slash = path.find('/');
    return slash != path.npos && plain_match(pattern, path.substr(slash + 1));
  }
  if (pattern.empty()) return path.empty();
  if (pattern[0] == '*') {
    for (std::size_t i = 0;; ++i) {
      std::string_view rest = pattern.substr(1);
      if (plain_match(rest, path.substr(i))) return true;
      if (i == path.size() || path[i] == '/') return false;
    }
  }
  if (path.empty() || (pattern[0] == '?' ? path[0] == '/' : pattern[0] != path[0])) return false;
  // `**` is special only as a whole part.
  std::string_view rest = pattern.substr(1);
  if (pattern[0] != '/' && rest.starts_with("**")) {
    const std::size_t stars = rest.find_first_not_of('*');
    rest.remove_prefix((stars == rest.npos ? rest.size() : stars) - 1);
  }
  return plain_match(rest, path.substr(1));
}

bool is_plain(std::string_view pattern) {
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    const bool letter = (c >= 'a' && c <= 'z') || c == '*' || c == '?' || c == '/';
    if (!letter) return false;
  }
  // Empty parts are dropped, and stars beside others at the front of a part are one.
  return pattern.find("//") == pattern.npos && !pattern.starts_with('/') &&
         !pattern.ends_with('/') && pattern.find("***") == pattern.npos &&
         pattern.find("**?") == pattern.npos && pattern.size() < 16;
}

bool has_star_beside_letters(std::string_view pattern) {
  for (std::size_t at = pattern.find("**"); at != pattern.npos; at = pattern.find("**", at + 1)) {
    const bool begins = at == 0 || pattern[at - 1] == '/';
    const bool ends = at + 2 == pattern.size() || pattern[at + 2] == '/';
    if (!begins || !ends) return true;
  }
  return false;
}

bool is_plain_path(std::string_view path) {
  return !path.empty() && path.size() < 24 && path.find("//") == path.npos &&
         !path.starts_with('/') && !path.ends_with('/') &&
         path.find_first_not_of("abcdefghijklmnopqrstuvwxyz/") == path.npos;
}

void check_pattern(std::string_view text, std::string_view path) {
  const Result<Pattern> pattern = Pattern::parse(text);
  if (!pattern) {
    must(pattern.error().kind == Kind::bad_pattern);
    return;
  }
  const bool matches = pattern->matches(path);
  if (is_plain(text) && !has_star_beside_letters(text) && !text.empty() && is_plain_path(path))
    must(matches == plain_match(text, path));
  if (matches && is_plain_path(path))
    for (std::size_t slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1))
      must(pattern->reaches_below(path.substr(0, slash)));
}

void check_needle(const std::string& expression, const std::string& line) {
  const Result<Needle> needle = Needle::compile(expression);
  if (!needle || line.find('\n') != line.npos || line.empty()) return;
  RE2::Options options;
  options.set_log_errors(false);
  options.set_never_nl(true);
  const RE2 regex("(?m:" + expression + ")", options);
  const bool expected = RE2::PartialMatch(line, regex);
  if (expected && expression.find('\n') == expression.npos)
    must(line.find(required_text(expression)) != line.npos);
  must((needle->find(line, 0) != line.npos) == expected);
}

std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + 1);
  return line;
}

}  // namespace
}  // namespace belljar::tools

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace belljar::tools;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string_view path = take_line(text);
  check_needle(std::string(take_line(text)), std::string(path));
  const Ignore ignore = Ignore::parse(text);
  (void)ignore.ignores(path, Entry::file);
  (void)ignore.ignores(path, Entry::folder);
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    check_pattern(line, path);
    if (const Result<PathRules> rules =
            PathRules::make({{PathRule::Says::deny, std::string(line)}}))
      (void)rules->allows("read", "/" + std::string(path));
  }
  return 0;
}
