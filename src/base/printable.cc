#include "base/printable.h"

#include "base/utf8.h"

namespace belljar {
namespace {

constexpr std::size_t kLongest = 2000;

bool is_control(unsigned char byte) { return byte < 0x20 || byte == 0x7f; }

// U+200B to U+200F, U+202A to U+202E, U+2060 to U+206F, U+FEFF: what shows nothing, or makes
// what follows show in another order.
bool is_invisible(std::string_view character) {
  const auto last = static_cast<unsigned char>(character[2]);
  if (character.starts_with("\xe2\x80"))
    return (last >= 0x8b && last <= 0x8f) || (last >= 0xaa && last <= 0xae);
  if (character.starts_with("\xe2\x81")) return last >= 0xa0 && last <= 0xaf;
  return character == "\xef\xbb\xbf";
}

// How many bytes the UTF-8 character at `at` has; 0 where there is none, and where it
// is one of U+0080 to U+009F, which terminals obey like escapes, or cannot be seen.
std::size_t character(std::string_view text, std::size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  if (is_control(first)) return 0;
  const std::size_t size = utf8_length(text.substr(at));
  const bool is_c1 = size == 2 && first == 0xc2 && static_cast<unsigned char>(text[at + 1]) < 0xa0;
  return is_c1 || (size == 3 && is_invisible(text.substr(at, 3))) ? 0 : size;
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

std::string printable(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const std::string shortened = shorten(text);
  std::string out;
  for (std::size_t i = 0; i < shortened.size();) {
    if (const std::size_t size = character(shortened, i); size != 0) {
      out.append(shortened, i, size);
      i += size;
      continue;
    }
    const auto byte = static_cast<unsigned char>(shortened[i++]);
    out.append("\\x").push_back(kDigits[byte >> 4U]);
    out.push_back(kDigits[byte & 0xfU]);
  }
  return out;
}

}  // namespace belljar
