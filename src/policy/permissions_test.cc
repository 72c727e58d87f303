#include "policy/permissions.h"

#include <gtest/gtest.h>

namespace belljar {
namespace {

using enum Permission;

Permission decide(const Permissions& permissions, std::string_view tool, std::string text) {
  const bool compound = is_compound_command(text);
  return permissions.decide(tool, {.text = std::move(text), .compound = compound});
}

const Permissions kGit{
    .otherwise = automatic,
    .tools = {{"shell", {{"*", ask}, {"git *", automatic}, {"git push*", deny}}}, {"empty", {}}}};

TEST(Permissions, rule_is_about_any_name_of_a_path) {
  const Permissions listed{
      .tools = {{"read", {{"*", deny}, {"src/*", automatic}, {"/w/x*", ask}}}}};
  EXPECT_EQ(listed.decide("read", {.text = "/w/src/a", .also = {"src/a"}}), automatic);
  EXPECT_EQ(listed.decide("read", {.text = "src/a", .also = {"~/a", "/w/src/a"}}), automatic);
  EXPECT_EQ(listed.decide("read", {.text = "x", .also = {"/w/x"}}), ask);
  EXPECT_EQ(listed.decide("read", {.text = "/w/other/a"}), deny);
}

TEST(Permissions, last_match_wins) {
  EXPECT_EQ(decide(kGit, "shell", "git status"), automatic);
  EXPECT_EQ(decide(kGit, "shell", "git push origin"), deny);
  EXPECT_EQ(decide(kGit, "shell", "make"), ask);
}

TEST(Permissions, a_tool_that_is_not_named_is_otherwise) {
  EXPECT_EQ(decide(kGit, "python", "1"), automatic);
}

TEST(Permissions, no_rule_that_matches_means_at_least_ask) {
  EXPECT_EQ(decide(kGit, "empty", "x"), ask);
  EXPECT_EQ(decide({.otherwise = deny, .tools = {{"empty", {}}}}, "empty", "x"), deny);
}

TEST(Permissions, several_commands_in_one_are_not_taken_for_the_first) {
  for (const char* command : {"git log; rm -rf .", "git log && rm x", "git log | sh", "git $(rm x)",
                              "git `rm x`", "git log\nrm x", "git log > x", "git log & rm x"})
    EXPECT_EQ(decide(kGit, "shell", command), ask) << command;
  EXPECT_EQ(decide({.tools = {{"shell", {{"*", automatic}}}}}, "shell", "a; b"), automatic);
  EXPECT_EQ(decide(kGit, "shell", "git push x; true"), deny);
}

TEST(Permissions, strictest_of_all_and_of_every_command) {
  const Permissions loose;
  const std::vector<Permissions> all{loose, kGit};
  const std::vector<PermissionSubject> fine{{.text = "git log"}};
  const std::vector<PermissionSubject> mixed{{.text = "git log"}, {.text = "git push"}};
  EXPECT_EQ(strictest(all, "shell", fine), automatic);
  EXPECT_EQ(strictest(all, "shell", mixed), deny);
}

TEST(Permissions, patterns) {
  EXPECT_TRUE(matches_pattern("*", ""));
  EXPECT_TRUE(matches_pattern("a*b?c", "axxbxc"));
  EXPECT_FALSE(matches_pattern("a*b?c", "axxbc"));
  EXPECT_FALSE(matches_pattern("", "a"));
  EXPECT_TRUE(matches_pattern("*a*a*a*", std::string(1000, 'a')));
}

TEST(Permissions, an_overlay_is_asked_first) {
  const Permissions both = overlay(kGit, {.otherwise = deny, .tools = {{"shell", {{"*", deny}}}}});
  EXPECT_EQ(decide(both, "shell", "git status"), deny);
  EXPECT_EQ(decide(both, "python", ""), deny);
}

}  // namespace
}  // namespace belljar
