#include "base/printable.h"

#include <gtest/gtest.h>

namespace belljar {
namespace {

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

TEST(Printable, long_text_is_cut_between_characters) {
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += "ä";
  std::string shown = printable(text);
  EXPECT_LT(shown.size(), 2100U);
  EXPECT_NE(shown.find("ä…ä"), shown.npos);
}

}  // namespace
}  // namespace belljar
