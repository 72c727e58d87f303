#include "server/skills.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "support/folder.h"

namespace belljar::server {
namespace {

SkillFiles skill_with(const std::string& second) {
  SkillFiles skill{.name = "greet", .description = "greets", .files = {}};
  skill.files.push_back({.path = "a", .content = "x"});
  skill.files.push_back({.path = second, .content = "y"});
  return skill;
}

TEST(SkillStore, a_version_that_cannot_be_written_is_not_there) {
  const testing::Folder folder;
  const std::string first = folder.path() + "/skill_1/1";
  // A name that is a file and a folder stands for a full disk.
  EXPECT_FALSE(SkillStore::write_version(first, skill_with("a/b")));
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/skill_1"));
  // The control; and what was there before stays.
  EXPECT_TRUE(SkillStore::write_version(first, skill_with("b")));
  EXPECT_FALSE(SkillStore::write_version(folder.path() + "/skill_1/2", skill_with("a/b")));
  EXPECT_EQ(folder.read("skill_1/1/b"), "y");
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/skill_1/2"));
}

}  // namespace
}  // namespace belljar::server
