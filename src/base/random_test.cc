#include "base/random.h"

#include <gtest/gtest.h>

namespace belljar {
namespace {

TEST(Random, names_differ) {
  EXPECT_EQ(random_hex(16).size(), 32U);
  EXPECT_NE(random_hex(16), random_hex(16));
  EXPECT_EQ(random_hex(8).find_first_not_of("0123456789abcdef"), std::string::npos);
}

}  // namespace
}  // namespace belljar
