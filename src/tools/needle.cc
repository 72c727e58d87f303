#include "tools/needle.h"

#include <re2/re2.h>

#include <algorithm>
#include <cstring>

namespace belljar::tools {
namespace {

constexpr std::int64_t kMaxMemory = std::int64_t{16}
                                    << 20;  // of RE2, which then forgets and goes on

// Bytes of source text, the most frequent first. What is not here is rarer.
constexpr std::string_view kFrequent = " etaoinsrlcdpumfhg_b.,()y;v=\"w-k/:*x0{}1'><q2j";

std::size_t rarity(char byte) {
  const std::size_t at = kFrequent.find(byte);
  return at == kFrequent.npos ? kFrequent.size() : at;
}

bool is_one_of(std::string_view set, char c) { return set.find(c) != set.npos; }

bool is_special(char c) { return is_one_of("\\.+*?()|[]{}^$", c); }

// After a backslash: what means itself, and what stands for others, or for a place.
bool is_escaped_literal(char c) { return is_special(c) || is_one_of("/-\"", c); }
bool is_escaped_class(char c) { return is_one_of("wWdDsSbB", c); }

// The end of the group or class that begins at `at`; npos if it is not plain to see.
std::size_t end_of_group(std::string_view pattern, std::size_t at) {
  int depth = 0;
  for (std::size_t i = at; i < pattern.size(); ++i) {
    if (pattern[i] == '\\')
      ++i;
    else if (pattern[i] == '[')
      return pattern.npos;  // classes in groups: not worth it
    else if (pattern[i] == '(')
      ++depth;
    else if (pattern[i] == ')' && --depth == 0)
      return i;
  }
  return pattern.npos;
}

std::size_t end_of_class(std::string_view pattern, std::size_t at) {
  std::size_t i = at + 1;
  if (i < pattern.size() && pattern[i] == '^') ++i;
  if (i < pattern.size() && pattern[i] == ']') ++i;
  for (; i < pattern.size(); ++i) {
    if (pattern[i] == '\\')
      ++i;
    else if (pattern[i] == '[')
      return pattern.npos;  // [:alpha:] and the like
    else if (pattern[i] == ']')
      return i;
  }
  return pattern.npos;
}

// The same of whatever begins at `at`, which may be a single character.
std::size_t end_of_piece(std::string_view pattern, std::size_t at) {
  const std::string_view rest = pattern.substr(at);
  switch (rest.front()) {
    case '|':
      return pattern.npos;
    case '(':
      // Flags may change what the rest means.
      if (rest.starts_with("(?") && !rest.starts_with("(?:")) return pattern.npos;
      return end_of_group(pattern, at);
    case '[':
      return end_of_class(pattern, at);
    case '{':
      return pattern.find('}', at);
    case '\\':  // \Q, \x, \p …: who knows
      if (rest.size() < 2) return pattern.npos;
      return is_escaped_literal(rest[1]) || is_escaped_class(rest[1]) ? at + 1 : pattern.npos;
    default:
      return at;
  }
}

void drop_last_character(std::string& text) {
  while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xc0) == 0x80) text.pop_back();
  if (!text.empty()) text.pop_back();
}

}  // namespace

// At the top level, one piece after another: literal characters add to a run, everything else
// ends it, and `?`, `*` and `{` take the character before them out of it. (Before a `+` it is
// there once, and then who knows.)
std::string required_text(std::string_view pattern) {
  std::string best;
  std::string run;
  auto end_run = [&] {
    if (run.size() > best.size()) best = run;
    run.clear();
  };
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char first = pattern[i];
    i = end_of_piece(pattern, i);
    if (i == pattern.npos) return {};
    if (first == '\\' ? is_escaped_literal(pattern[i]) : !is_special(first)) {
      run.push_back(pattern[i]);
      continue;
    }
    if (is_one_of("?*{", first)) drop_last_character(run);
    end_run();
  }
  end_run();
  return best;
}

Needle::Needle() = default;
Needle::Needle(Needle&&) noexcept = default;
Needle& Needle::operator=(Needle&&) noexcept = default;
Needle::~Needle() = default;

Result<Needle> Needle::compile(const std::string& pattern, Case letters) {
  if (pattern.empty())
    return refuse(Kind::bad_pattern, "the pattern is empty", "say what to look for");
  if (pattern.size() > kMaxExpression)
    return refuse(Kind::bad_pattern,
                  "a pattern of more than " + std::to_string(kMaxExpression) + " bytes",
                  "use a shorter one");
  RE2::Options options;
  options.set_log_errors(false);
  options.set_never_nl(true);
  options.set_max_mem(kMaxMemory);
  options.set_case_sensitive(letters == Case::matters);
  Needle needle;
  // A block has many lines: `^` and `$` are those of each.
  needle.regex_ = std::make_unique<RE2>("(?m:" + pattern + ")", options);
  // What stands alone must be right: `a)(b` would be, in those parentheses.
  const RE2 alone(pattern, options);
  if (!alone.ok() || !needle.regex_->ok())
    return refuse(Kind::bad_pattern,
                  "the regular expression cannot be read: " +
                      (alone.ok() ? needle.regex_->error() : alone.error()),
                  "it is RE2: no look-around and no back-references; a backslash before a "
                  "character that is meant itself");
  if (letters == Case::ignored || pattern.find('\n') != pattern.npos) return needle;
  needle.text_ = required_text(pattern);
  needle.is_text_ = !needle.text_.empty() && std::ranges::none_of(pattern, is_special);
  const auto rarest = std::ranges::max_element(needle.text_, {}, rarity);
  needle.rarest_ = static_cast<std::size_t>(rarest - needle.text_.begin());
  return needle;
}

// By its rarest byte: the library's memchr looks at 32 bytes at a time.
std::size_t Needle::find_text(std::string_view block, std::size_t from) const {
  const char* end = block.data() + block.size();
  const char* at = block.data() + from + rarest_;
  while (at < end) {
    const void* hit = std::memchr(at, text_[rarest_], static_cast<std::size_t>(end - at));
    if (hit == nullptr) return block.npos;
    const char* begin = static_cast<const char*>(hit) - rarest_;
    if (static_cast<std::size_t>(end - begin) < text_.size()) return block.npos;
    if (std::memcmp(begin, text_.data(), text_.size()) == 0)
      return static_cast<std::size_t>(begin - block.data());
    at = begin + rarest_ + 1;
  }
  return block.npos;
}

std::size_t Needle::find(std::string_view block, std::size_t from) const {
  if (text_.empty()) {
    const re2::StringPiece whole(block.data(), block.size());
    // Without asking where it is, it takes one pass instead of two.
    if (from >= block.size() ||
        !regex_->Match(whole, from, block.size(), RE2::UNANCHORED, nullptr, 0))
      return block.npos;
    re2::StringPiece match;
    if (!regex_->Match(whole, from, block.size(), RE2::UNANCHORED, &match, 1)) return block.npos;
    const auto at = static_cast<std::size_t>(match.data() - block.data());
    // After the last newline there is no line.
    return at == block.size() && block.ends_with('\n') ? block.npos : at;
  }
  while (from < block.size()) {
    const std::size_t at = find_text(block, from);
    if (at == block.npos || is_text_) return at;
    const std::size_t before = at == 0 ? block.npos : block.rfind('\n', at - 1);
    const std::size_t begin = before == block.npos ? 0 : before + 1;
    const std::size_t end = std::min(block.find('\n', at), block.size());
    const re2::StringPiece line(block.data() + begin, end - begin);
    if (regex_->Match(line, 0, line.size(), RE2::UNANCHORED, nullptr, 0)) return at;
    from = end + 1;
  }
  return block.npos;
}

}  // namespace belljar::tools
