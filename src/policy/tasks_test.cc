#include "policy/tasks.h"

#include <gtest/gtest.h>

namespace belljar {
namespace {

Config with(std::initializer_list<std::pair<const char*, std::vector<std::string>>> tasks) {
  Config config{.file = "belljar.toml"};
  for (const auto& [name, depends] : tasks) config.tasks[name].depends = depends;
  return config;
}

std::string order(const Config& config, std::string_view name) {
  const std::string_view names[] = {name};
  auto found = task_order(config, names);
  if (!found) return found.error().message();
  std::string text;
  for (const auto* entry : *found) text += entry->first + " ";
  return text;
}

TEST(Tasks, what_a_task_depends_on_runs_first_and_once) {
  Config config = with({{"all", {"test", "lint"}},
                        {"test", {"build"}},
                        {"lint", {"build"}},
                        {"build", {}},
                        {"other", {}}});
  EXPECT_EQ(order(config, "all"), "build test lint all ");
  EXPECT_EQ(order(config, "build"), "build ");
}

TEST(Tasks, a_circle_is_named) {
  Config config = with({{"x", {"a"}}, {"a", {"b"}}, {"b", {"a"}}});
  EXPECT_NE(order(config, "x").find("tasks depend on each other: a -> b -> a"), std::string::npos);
}

TEST(Tasks, a_missing_task_has_a_hint) {
  EXPECT_EQ(order(with({{"build", {}}}), "biuld"),
            "there is no task \"biuld\" in belljar.toml (hint: did you mean build?)");
}

TEST(Tasks, a_long_chain_needs_no_stack) {
  Config config;
  constexpr int kMany = 20'000;
  for (int i = 0; i < kMany; ++i) config.tasks[std::to_string(i)].depends = {std::to_string(i + 1)};
  config.tasks[std::to_string(kMany)];
  const std::string_view first[] = {"0"};
  auto found = task_order(config, first);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->size(), kMany + 1U);
}

}  // namespace
}  // namespace belljar
