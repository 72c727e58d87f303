#include "server/front_matter.h"

#include <algorithm>

namespace belljar::server {
namespace {

constexpr std::ptrdiff_t kMaxBrackets = 200;

std::size_t line_end(std::string_view text, std::size_t from) {
  return std::min(text.find('\n', from), text.size());
}

bool is_rule(std::string_view line) {
  while (line.ends_with('\r') || line.ends_with(' ')) line.remove_suffix(1);
  return line == "---";
}

bool is_bracket(char c) { return c == '[' || c == '{'; }

}  // namespace

Result<std::string> front_matter(std::string_view text, std::size_t most) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  std::size_t end = line_end(text, 0);
  if (!is_rule(text.substr(0, end))) return fail("it does not begin with front matter (---)");
  const std::size_t begin = std::min(end + 1, text.size());
  for (std::size_t at = begin; at < text.size(); at = end + 1) {
    if (at - begin > most)
      return fail("its front matter is larger than " + std::to_string(most >> 10) + " KiB");
    end = line_end(text, at);
    if (!is_rule(text.substr(at, end - at))) continue;
    std::string yaml(text.substr(begin, at - begin));
    if (std::ranges::count_if(yaml, is_bracket) > kMaxBrackets)
      return fail("its front matter has too many brackets");
    return yaml;
  }
  return fail("its front matter has no end (---)");
}

}  // namespace belljar::server
