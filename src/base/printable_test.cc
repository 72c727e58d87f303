#include "base/printable.h"

#include <gtest/gtest.h>

namespace belljar {
namespace {

std::string utf8(char32_t code) {
  auto last = [](char32_t bits) { return static_cast<char>(0x80U | (bits & 0x3fU)); };
  if (code < 0x800) return {static_cast<char>(0xc0U | code >> 6U), last(code)};
  if (code < 0x10000) return {static_cast<char>(0xe0U | code >> 12U), last(code >> 6U), last(code)};
  return {static_cast<char>(0xf0U | code >> 18U), last(code >> 12U), last(code >> 6U), last(code)};
}

TEST(Printable, plain_text_stays) { EXPECT_EQ(printable("naïve — text"), "naïve — text"); }

TEST(Printable, escapes_cannot_reach_the_terminal) {
  EXPECT_EQ(printable("a\x1b[2Jb\nc\r\x7f"), "a\\x1b[2Jb\\x0ac\\x0d\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\xc2\\x9b31m");  // the one-character form of ESC [
}

TEST(Printable, bytes_that_are_no_utf8_are_shown_as_such) {
  EXPECT_EQ(printable("a\x9b\xff\xe2\x82z"), "a\\x9b\\xff\\xe2\\x82z");
  EXPECT_EQ(printable("\xc0\x80"), "\\xc0\\x80");  // an overlong NUL
}

TEST(Printable, what_cannot_be_seen_or_turns_the_order_is_shown_as_bytes) {
  // NOLINTBEGIN(misc-misleading-bidirectional): that is what it is about
  EXPECT_EQ(printable("rm \u202etxt"), "rm \\xe2\\x80\\xaetxt");
  EXPECT_EQ(printable("a\u200bb\u2066c\ufeff"), "a\\xe2\\x80\\x8bb\\xe2\\x81\\xa6c\\xef\\xbb\\xbf");
  // NOLINTEND(misc-misleading-bidirectional)
  EXPECT_EQ(printable("“a” – b…"), "“a” – b…");
}

// One of each kind: what has no width, what joins or reorders, blanks that are letters or symbols,
// separators of lines, tags, variation selectors, private use, noncharacters.
TEST(Printable, no_character_that_is_not_seen_comes_through) {
  for (const unsigned code :
       {0x80U,    0x9bU,    0xa0U,    0xadU,    0x34fU,   0x61cU,  0x115fU, 0x1160U,  0x1680U,
        0x17b4U,  0x180bU,  0x180eU,  0x2000U,  0x200aU,  0x200bU, 0x200dU, 0x2028U,  0x2029U,
        0x202eU,  0x202fU,  0x205fU,  0x2064U,  0x2066U,  0x206fU, 0x2800U, 0x3000U,  0x3164U,
        0xe000U,  0xfe0fU,  0xfeffU,  0xffa0U,  0xfff0U,  0xfff9U, 0xffffU, 0x1d159U, 0x1d173U,
        0xe0001U, 0xe0041U, 0xe0100U, 0xf0000U, 0x10ffffU}) {
    const std::string text = utf8(code);
    EXPECT_EQ(printable("a" + text + "b").find(text), std::string::npos) << std::hex << code;
  }
}

TEST(Printable, letters_marks_and_symbols_of_all_scripts_stay) {
  for (const char* text :
       {"é", "e\u0301", "中文", "العربية", "עברית", "हिन्दी", "ไทย", "🙂", "→ ½ €"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, all_of_a_text_is_visible_however_long) {
  EXPECT_EQ(visible(std::string(10'000, 'a') + "\n"), std::string(10'000, 'a') + "\\x0a");
}

TEST(Printable, long_text_is_cut_between_characters) {
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += "ä";
  std::string shown = printable(text);
  EXPECT_LT(shown.size(), 2100U);
  EXPECT_NE(shown.find("ä…ä"), shown.npos);
}

}  // namespace
}  // namespace belljar
