#include "tools/pattern.h"

#include <algorithm>
#include <array>

#include "base/utf8.h"
#include "tools/braces.h"

namespace belljar::tools {
namespace {

struct Character {
  char32_t code;
  std::size_t size;
};

// Bytes that are no UTF-8 are characters of their own, beyond all others.
Character character_at(std::string_view text, std::size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  if (first < 0x80) return {first, 1};
  const std::size_t size = utf8_length(text.substr(at));
  if (size == 0) return {char32_t{0x110000} + first, 1};
  char32_t code = first & (0xffU >> (size + 1));
  for (std::size_t i = 1; i < size; ++i)
    code = code << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3fU);
  return {code, size};
}

using Ranges = std::vector<std::pair<char32_t, char32_t>>;
struct Class {
  std::string_view name;
  Ranges ranges;
};

const std::array<Class, 12>& classes() {
  static const std::array<Class, 12> all = {{
      {"alpha", {{'a', 'z'}, {'A', 'Z'}}},
      {"digit", {{'0', '9'}}},
      {"alnum", {{'a', 'z'}, {'A', 'Z'}, {'0', '9'}}},
      {"upper", {{'A', 'Z'}}},
      {"lower", {{'a', 'z'}}},
      {"space", {{'\t', '\r'}, {' ', ' '}}},
      {"blank", {{' ', ' '}, {'\t', '\t'}}},
      {"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
      {"xdigit", {{'0', '9'}, {'a', 'f'}, {'A', 'F'}}},
      {"cntrl", {{0, 0x1f}, {0x7f, 0x7f}}},
      {"print", {{' ', '~'}}},
      {"graph", {{'!', '~'}}},
  }};
  return all;
}

std::unexpected<Failure> bad(std::string what, std::string_view text) {
  return refuse(Kind::bad_pattern, std::move(what) + " in \"" + std::string(text) + "\"",
                "write a backslash before a character that is meant itself");
}

}  // namespace

Result<Pattern> Pattern::parse(std::string_view text, Braces braces) {
  if (text.size() > kMaxPattern)
    return refuse(Kind::bad_pattern,
                  "a pattern of more than " + std::to_string(kMaxPattern) + " bytes",
                  "use a shorter one");
  std::vector<std::string> texts = {std::string(text)};
  if (braces == Braces::alternatives) texts = TRY(expand_braces(text, kMaxAlternatives));
  Pattern pattern;
  for (const std::string& alternative : texts)
    pattern.alternatives_.push_back(TRY(parse_parts(alternative)));
  return pattern;
}

Result<Pattern::Parts> Pattern::parse_parts(std::string_view text) {
  Parts parts;
  for (;;) {
    const std::size_t slash = text.find('/');
    const std::string_view part = text.substr(0, slash);
    const bool repeated =
        part == "**" && !parts.empty() && parts.back().type == Part::Type::folders;
    const bool is_nothing = part.empty() || part == ".";
    if (!repeated && !is_nothing) parts.push_back(TRY(parse_part(part)));
    if (slash == text.npos) return parts;
    text.remove_prefix(slash + 1);
  }
}

Result<Pattern::Part> Pattern::parse_part(std::string_view text) {
  Part part;
  if (text == "**") {
    part.type = Part::Type::folders;
    return part;
  }
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == '*') {
      // Two in a row mean no more than one here.
      if (part.tokens.empty() || part.tokens.back().type != Token::Type::star)
        part.tokens.push_back({.type = Token::Type::star});
      ++i;
    } else if (text[i] == '?') {
      part.tokens.push_back({.type = Token::Type::any});
      ++i;
    } else if (text[i] == '[') {
      i = TRY(parse_set(text, i, part));
    } else {
      if (text[i] == '\\') ++i;
      if (i == text.size()) return bad("a backslash at the end", text);
      const Character c = character_at(text, i);
      part.tokens.push_back({.type = Token::Type::character, .character = c.code});
      part.text.append(text.substr(i, c.size));
      i += c.size;
    }
  }
  auto is_character = [](const Token& token) { return token.type == Token::Type::character; };
  if (std::ranges::all_of(part.tokens, is_character))
    part.type = Part::Type::name;
  else if (part.tokens.front().type == Token::Type::star &&
           std::all_of(part.tokens.begin() + 1, part.tokens.end(), is_character))
    part.type = Part::Type::ending;
  return part;
}

// `at` is that of the `[`; returns the place after the `]`.
Result<std::size_t> Pattern::parse_set(std::string_view text, std::size_t at, Part& part) {
  Set set;
  std::size_t i = at + 1;
  if (i < text.size() && (text[i] == '!' || text[i] == '^')) {
    set.negated = true;
    ++i;
  }
  const std::size_t first = i;
  for (;;) {
    if (i >= text.size()) return bad("a `[` that is not closed", text);
    if (text[i] == ']' && i != first) break;
    if (text.substr(i).starts_with("[:")) {
      const std::size_t end = text.find(":]", i + 2);
      if (end == text.npos) return bad("a `[:` that is not closed", text);
      const std::string_view class_name = text.substr(i + 2, end - i - 2);
      const auto found = std::ranges::find(classes(), class_name, &Class::name);
      if (found == classes().end()) return bad("an unknown class", text);
      set.ranges.insert(set.ranges.end(), found->ranges.begin(), found->ranges.end());
      i = end + 2;
      continue;
    }
    auto take = [&]() -> Result<char32_t> {
      if (text[i] == '\\') ++i;
      if (i >= text.size()) return bad("a `[` that is not closed", text);
      const Character c = character_at(text, i);
      i += c.size;
      return c.code;
    };
    const char32_t low = TRY(take());
    char32_t high = low;
    if (i + 1 < text.size() && text[i] == '-' && text[i + 1] != ']') {
      ++i;
      high = TRY(take());
    }
    set.ranges.emplace_back(low, high);  // the wrong way round it holds nothing
  }
  part.tokens.push_back({.type = Token::Type::set, .set = part.sets.size()});
  part.sets.push_back(std::move(set));
  return i + 1;
}

bool Pattern::part_matches(const Part& part, std::string_view name) {
  switch (part.type) {
    case Part::Type::folders:
      return true;
    case Part::Type::name:
      return name == part.text;
    case Part::Type::ending:
      return name.ends_with(part.text);
    case Part::Type::tokens:
      break;
  }
  return tokens_match(part, name);
}

// Only the last star needs to be tried again with more: what came before it has matched with as
// little as possible, which leaves the most to the rest.
bool Pattern::tokens_match(const Part& part, std::string_view name) {
  constexpr std::size_t kNone = std::string_view::npos;
  std::size_t token = 0;
  std::size_t at = 0;
  std::size_t star = kNone;  // the token after the last star
  std::size_t star_end = 0;  // where the name goes on after what it took
  while (at < name.size()) {
    if (token < part.tokens.size() && part.tokens[token].type == Token::Type::star) {
      star = ++token;
      star_end = at;
      continue;
    }
    const Character c = character_at(name, at);
    bool fits = false;
    if (token < part.tokens.size()) {
      const Token& t = part.tokens[token];
      fits =
          t.type == Token::Type::any || (t.type == Token::Type::character && t.character == c.code);
      if (t.type == Token::Type::set) {
        const Set& set = part.sets[t.set];
        const bool holds = std::ranges::any_of(set.ranges, [&](const auto& range) {
          return range.first <= c.code && c.code <= range.second;
        });
        fits = holds != set.negated;
      }
    }
    if (fits) {
      ++token;
      at += c.size;
    } else if (star != kNone) {
      star_end += character_at(name, star_end).size;
      token = star;
      at = star_end;
    } else {
      return false;
    }
  }
  while (token < part.tokens.size() && part.tokens[token].type == Token::Type::star) ++token;
  return token == part.tokens.size();
}

bool Pattern::matches(std::string_view path) const {
  return std::ranges::any_of(alternatives_,
                             [&](const Parts& parts) { return parts_match(parts, path); });
}

// The same as above, one level up: `**` takes folders as `*` takes characters.
bool Pattern::parts_match(const Parts& parts, std::string_view path) {
  constexpr std::size_t kNone = std::string_view::npos;
  std::size_t part = 0;
  std::size_t at = 0;
  std::size_t star = kNone;
  std::size_t star_end = 0;
  auto after = [&](std::size_t from) {  // where the next name begins; past the end if none does
    const std::size_t slash = path.find('/', from);
    return slash == kNone ? path.size() + 1 : slash + 1;
  };
  while (at < path.size()) {
    if (part < parts.size() && parts[part].type == Part::Type::folders) {
      star = ++part;
      star_end = at;
      if (part == parts.size()) return true;  // `a/**` is all that is in a, and not a itself
      continue;
    }
    const std::size_t next = after(at);
    const std::string_view name = path.substr(at, next - at - 1);
    if (part < parts.size() && part_matches(parts[part], name)) {
      ++part;
      at = next;
    } else if (star != kNone) {
      star_end = after(star_end);
      part = star;
      at = star_end;
    } else {
      return false;
    }
  }
  return part == parts.size();
}

bool Pattern::reaches_below(std::string_view folder) const {
  return folder.empty() || std::ranges::any_of(alternatives_, [&](const Parts& parts) {
           return parts_reach_below(parts, folder);
         });
}

bool Pattern::parts_reach_below(const Parts& parts, std::string_view folder) {
  for (const Part& part : parts) {
    if (part.type == Part::Type::folders || folder.empty()) return true;
    const std::size_t slash = folder.find('/');
    if (!part_matches(part, folder.substr(0, slash))) return false;
    folder.remove_prefix(slash == folder.npos ? folder.size() : slash + 1);
  }
  return false;
}

}  // namespace belljar::tools
