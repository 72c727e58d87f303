#include "base/utf8.h"

#include <gtest/gtest.h>

namespace belljar {
namespace {

TEST(Utf8, takes_what_the_standard_takes) {
  EXPECT_TRUE(is_utf8("aé€\xf4\x8f\xbf\xbf"));
  EXPECT_FALSE(is_utf8("\xf4\x90\x80\x80"));  // beyond the last character
  EXPECT_FALSE(is_utf8("\xed\xa0\x80"));      // a surrogate
  EXPECT_FALSE(is_utf8("\xc0\x80"));          // overlong
  EXPECT_FALSE(is_utf8("\xe0\x9f\xbf"));
  EXPECT_FALSE(is_utf8("\xe2\x82"));  // cut off
}

TEST(Utf8, is_repaired_byte_by_byte) {
  EXPECT_EQ(repair_utf8("a\xff\xe2\x82z"), "a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz");
  EXPECT_EQ(repair_utf8("café"), "café");
}

}  // namespace
}  // namespace belljar
