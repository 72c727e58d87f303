#include "base/json_size.h"

#include <gtest/gtest.h>

#include <string>

namespace belljar {
namespace {

TEST(JsonSize, values_are_counted_and_what_strings_hold_is_not) {
  EXPECT_FALSE(has_more_values("", 1));
  EXPECT_FALSE(has_more_values(R"("a, [b], {c}")", 1));
  EXPECT_FALSE(has_more_values(R"({"a": "x\",[[[\\", "b": 2})", 3));
  EXPECT_TRUE(has_more_values(R"({"a": "x\",[[[\\", "b": 2})", 2));
  EXPECT_TRUE(has_more_values("[1,2,3]", 3));
  EXPECT_FALSE(has_more_values("[1,2,3]", 4));
  EXPECT_TRUE(has_more_values("[" + std::string(1000, ',') + "]", 1000));
  EXPECT_FALSE(has_more_values("\"\\", 1)) << "cut off amid an escape";
}

}  // namespace
}  // namespace belljar
