// What is sent to init, byte by byte, is not looked at here: init_test.cc has both ends.
#include "launcher/request.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include "launcher/protocol.h"

namespace belljar::launcher {
namespace {

using Variables = std::vector<std::string>;

std::string folders(std::size_t count) {
  std::string path = "PATH=";
  for (std::size_t i = 0; i < count; ++i) path += "/b:";
  return path;
}

Command with_folders(std::string name, std::size_t count) {
  Command command;
  command.arguments.push_back(std::move(name));
  command.environment.push_back(folders(count));
  return command;
}

std::uint32_t paths_of(const std::string& request) {
  protocol::Spawn spawn{};
  std::memcpy(&spawn, request.data() + sizeof(protocol::Header), sizeof spawn);
  return spawn.paths;
}

TEST(Request, a_name_that_no_folder_holds_is_not_joined_with_each) {
  const Command longest = with_folders(std::string(255, 'x'), 100);
  const Command longer = with_folders(std::string(100'000, 'x'), 20'000);
  const Result<std::string> fits = encode_spawn(longest, 1, "/", {});
  const Result<std::string> does_not = encode_spawn(longer, 1, "/", {});
  ASSERT_TRUE(fits && does_not);
  EXPECT_EQ(paths_of(*fits), 100U) << "the control";
  EXPECT_EQ(paths_of(*does_not), 1U);
  EXPECT_LT(does_not->size(), 300'000U);
}

TEST(Request, a_path_that_is_too_long_is_refused) {
  const Result<std::string> fits = encode_spawn(with_folders("x", 20'000), 1, "/", {});
  const Result<std::string> does_not = encode_spawn(with_folders("x", 30'000), 1, "/", {});
  EXPECT_TRUE(fits) << "the control";
  ASSERT_FALSE(does_not);
  EXPECT_EQ(does_not.error().err, E2BIG);
  EXPECT_TRUE(encode_spawn(with_folders("/x", 30'000), 1, "/", {}))
      << "who names it by its path looks nowhere";
}

TEST(Request, variables_take_the_place_of_those_under_them) {
  EXPECT_EQ(overlay({"A=1", "AB=2", "C=3"}, {"C=4", "A=5"}), (Variables{"AB=2", "C=4", "A=5"}));
  EXPECT_EQ(overlay({"A=1"}, {"B=2", "C=3", "B=4"}), (Variables{"A=1", "C=3", "B=4"}));
  EXPECT_EQ(overlay({"A=1"}, {}), Variables{"A=1"});
}

// With a pass over all for each it would be ten thousand million comparisons.
TEST(Request, many_variables_take_no_time) {
  Variables many;
  for (int i = 0; i < 100'000; ++i) many.push_back("V" + std::to_string(i) + "=x");
  EXPECT_EQ(overlay(many, many), many);
}

}  // namespace
}  // namespace belljar::launcher
