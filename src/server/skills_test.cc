#include "server/skills.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "support/folder.h"

namespace belljar::server {
namespace {

// With a second file; one whose name is a file's and a folder's stands for a full disk.
Status write(const std::string& folder, const std::string& second) {
  SkillFiles files{.name = "greet", .description = "greets", .files = {}};
  files.files.push_back({.path = "a", .content = "x"});
  files.files.push_back({.path = second, .content = "y"});
  return SkillStore::write_version({.id = "skill_1", .version = 1, .folder = folder}, files, {});
}

TEST(SkillStore, a_version_that_cannot_be_written_is_not_there) {
  const testing::Folder folder;
  const std::string skill = folder.path() + "/skill_1";
  EXPECT_FALSE(write(skill + "/1", "a/b"));
  EXPECT_FALSE(std::filesystem::exists(skill));
  // The control; and what was there before stays.
  EXPECT_TRUE(write(skill + "/1", "b"));
  EXPECT_FALSE(write(skill + "/2", "a/b"));
  EXPECT_EQ(folder.read("skill_1/1/b"), "y");
  EXPECT_FALSE(std::filesystem::exists(skill + "/2"));
}

}  // namespace
}  // namespace belljar::server
