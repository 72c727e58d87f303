#include "base/utf8.h"

#include <cstdint>
#include <cstring>

namespace belljar {
namespace {

// How many bytes at the front are well-formed.
std::size_t well_formed(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size()) {
    // Most is ASCII, and eight at a time are quickly seen to be.
    std::uint64_t eight = 0;
    if (text.size() - end >= sizeof eight) std::memcpy(&eight, text.data() + end, sizeof eight);
    if (text.size() - end >= sizeof eight && (eight & 0x8080808080808080U) == 0) {
      end += sizeof eight;
      continue;
    }
    if (static_cast<unsigned char>(text[end]) < 0x80) {
      ++end;
      continue;
    }
    const std::size_t length = utf8_length(text.substr(end));
    if (length == 0) break;
    end += length;
  }
  return end;
}

}  // namespace

// By the table of well-formed byte sequences in the Unicode standard (3-7): only the
// second byte has bounds that depend on the first.
std::size_t utf8_length(std::string_view text) {
  auto in = [&](std::size_t i, unsigned low, unsigned high) {
    if (i >= text.size()) return false;
    const auto byte = static_cast<unsigned char>(text[i]);
    return byte >= low && byte <= high;
  };
  if (in(0, 0x00, 0x7f)) return 1;
  if (in(0, 0xc2, 0xdf)) return in(1, 0x80, 0xbf) ? 2 : 0;
  const bool third = in(2, 0x80, 0xbf);
  if (in(0, 0xe0, 0xef)) {
    const bool second = in(1, in(0, 0xe0, 0xe0) ? 0xa0 : 0x80, in(0, 0xed, 0xed) ? 0x9f : 0xbf);
    return second && third ? 3 : 0;
  }
  if (!in(0, 0xf0, 0xf4)) return 0;
  const bool second = in(1, in(0, 0xf0, 0xf0) ? 0x90 : 0x80, in(0, 0xf4, 0xf4) ? 0x8f : 0xbf);
  return second && third && in(3, 0x80, 0xbf) ? 4 : 0;
}

bool is_utf8(std::string_view text) { return well_formed(text) == text.size(); }

std::string repair_utf8(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (;;) {
    const std::size_t good = well_formed(text);
    result.append(text.substr(0, good));
    text.remove_prefix(good);
    if (text.empty()) return result;
    result.append("\xef\xbf\xbd");
    text.remove_prefix(1);
  }
}

}  // namespace belljar
