#include "server/secret.h"

#include <gtest/gtest.h>

namespace belljar::server {
namespace {

// RFC 4231, test cases 2 and 6.
TEST(Secret, signs_as_the_standard_says) {
  EXPECT_EQ(sign("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(
      sign(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First"),
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(Secret, compares_all_of_it) {
  EXPECT_TRUE(same_secret("abc", "abc"));
  EXPECT_FALSE(same_secret("abc", "abd"));
  EXPECT_FALSE(same_secret("abc", "ab"));
  EXPECT_FALSE(same_secret("\xff", "\x7f"));
}

}  // namespace
}  // namespace belljar::server
