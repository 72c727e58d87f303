#include "base/printable.h"

namespace belljar {
namespace {

constexpr std::size_t kLongest = 600;

bool is_control(unsigned char byte) { return byte < 0x20 || byte == 0x7f; }

// The second byte of U+0080 to U+009F, which terminals obey like escapes.
bool is_c1(std::string_view text, std::size_t at) {
  return text[at] == '\xc2' && at + 1 < text.size() &&
         static_cast<unsigned char>(text[at + 1]) < 0xa0;
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
  for (std::size_t i = 0; i < shortened.size(); ++i) {
    const auto byte = static_cast<unsigned char>(shortened[i]);
    if (!is_control(byte) && !is_c1(shortened, i)) {
      out.push_back(shortened[i]);
      continue;
    }
    const bool two = byte == 0xc2;
    const auto shown = two ? static_cast<unsigned char>(shortened[++i]) : byte;
    out.append("\\x").push_back(kDigits[shown >> 4U]);
    out.push_back(kDigits[shown & 0xfU]);
  }
  return out;
}

}  // namespace belljar
