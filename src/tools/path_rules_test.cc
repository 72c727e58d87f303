#include "tools/path_rules.h"

#include <gtest/gtest.h>

namespace belljar::tools {
namespace {

constexpr auto kAllow = PathRule::Says::allow;
constexpr auto kDeny = PathRule::Says::deny;

TEST(PathRules, allow_all_when_there_are_none) {
  EXPECT_TRUE(PathRules().allows("read", "/workspace/a"));
}

TEST(PathRules, the_last_that_matches_decides) {
  const PathRules rules = *PathRules::make({{kDeny, "*"}, {kAllow, "/w/src"}, {kDeny, "*.pem"}});
  EXPECT_FALSE(rules.allows("read", "/w/a"));
  EXPECT_FALSE(rules.allows("read", "/w"));
  EXPECT_TRUE(rules.allows("read", "/w/src/a.cc"));
  EXPECT_TRUE(rules.allows("read", "/w/src"));
  EXPECT_FALSE(rules.allows("read", "/w/src/key.pem"));
  EXPECT_FALSE(rules.allows("read", "/w/src/key.pem/inner"));
  EXPECT_FALSE(rules.allows("read", "/w/srcs"));
}

TEST(PathRules, name_a_tool_or_all) {
  const PathRules rules = *PathRules::make({{kDeny, "/w/docs", "write"}, {kDeny, "*.secret"}});
  EXPECT_TRUE(rules.allows("read", "/w/docs/a"));
  EXPECT_FALSE(rules.allows("write", "/w/docs/a"));
  EXPECT_FALSE(rules.allows("read", "/w/a.secret"));
  EXPECT_FALSE(rules.allows("write", "/w/a.secret"));
}

TEST(PathRules, that_cannot_be_read_are_an_error) {
  EXPECT_EQ(PathRules::make({{kDeny, "[a"}}).error().kind, Kind::bad_pattern);
  EXPECT_EQ(PathRules::make({{kDeny, ""}}).error().kind, Kind::bad_pattern);
  EXPECT_EQ(PathRules::make({{kDeny, "a", ""}}).error().kind, Kind::bad_argument);
}

}  // namespace
}  // namespace belljar::tools
