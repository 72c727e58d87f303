#include "base/printable.h"

#include <unictype.h>

#include <algorithm>
#include <cstdint>

#include "base/utf8.h"

namespace belljar {
namespace {

constexpr std::size_t kLongest = 2000;

char32_t decode(std::string_view character) {
  if (character.size() == 1) return static_cast<unsigned char>(character[0]);
  char32_t code = static_cast<unsigned char>(character[0]) & (0x7fU >> character.size());
  for (const char c : character.substr(1)) code = code << 6U | (static_cast<unsigned>(c) & 0x3fU);
  return code;
}

// By what Unicode says of it, so that a character of a later version is judged too once the library
// knows it. The blanks at the end are symbols to Unicode.
bool is_seen(char32_t code) {
  if (code < 0x7f) return code >= ' ';
  constexpr std::uint32_t kUnseen = UC_CATEGORY_MASK_Cc | UC_CATEGORY_MASK_Cf |
                                    UC_CATEGORY_MASK_Cs | UC_CATEGORY_MASK_Co |
                                    UC_CATEGORY_MASK_Zl | UC_CATEGORY_MASK_Zp | UC_CATEGORY_MASK_Zs;
  return !uc_is_general_category_withtable(code, kUnseen) &&
         !uc_is_property_default_ignorable_code_point(code) &&
         !uc_is_property_not_a_character(code) && code != U'\u2800' && code != U'\U0001D159';
}

// Never inside a UTF-8 sequence.
std::size_t boundary(std::string_view text, std::size_t at) {
  while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) ++at;
  return at;
}

std::string shorten(std::string_view text) {
  if (text.size() <= kLongest) return std::string(text);
  std::string_view head = text.substr(0, boundary(text, kLongest / 2));
  std::string_view tail = text.substr(boundary(text, text.size() - kLongest / 2));
  return std::string(head).append("…").append(tail);
}

}  // namespace

std::string visible(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t size = utf8_length(text);
    const std::string_view next = text.substr(0, std::max<std::size_t>(size, 1));
    text.remove_prefix(next.size());
    if (size != 0 && is_seen(decode(next))) {
      out.append(next);
      continue;
    }
    for (const char c : next) {
      const auto byte = static_cast<unsigned char>(c);
      out.append("\\x").push_back(kDigits[byte >> 4U]);
      out.push_back(kDigits[byte & 0xfU]);
    }
  }
  return out;
}

std::string printable(std::string_view text) { return visible(shorten(text)); }

}  // namespace belljar
