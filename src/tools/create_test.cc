#include "tools/create.h"

#include <gtest/gtest.h>

#include <iterator>

#include "support/workspace.h"

namespace belljar::tools {
namespace {

namespace fs = std::filesystem;

TEST(Create, gives_up_when_the_file_has_changed_and_leaves_nothing) {
  const belljar::testing::Folder folder;
  folder.write("file", "theirs");
  const Fd fd = *open_path(folder.path().c_str(), O_PATH);
  const std::string name = "file";
  const Replacement it{.folder_fd = fd.get(), .name = name, .content = "ours"};
  const Status status = replace(it, "edit file", [] { return false; });
  EXPECT_EQ(status.error().kind, Kind::changed);
  EXPECT_EQ(folder.read("file"), "theirs");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
  EXPECT_TRUE(replace(it, "edit file", [] { return true; }));  // the control
  EXPECT_EQ(folder.read("file"), "ours");
}

TEST(Create, leaves_nothing_when_the_name_is_a_folder) {
  const belljar::testing::Folder folder;
  fs::create_directory(folder.path() + "/name");
  const Fd fd = *open_path(folder.path().c_str(), O_PATH);
  const std::string name = "name";
  const Replacement it{.folder_fd = fd.get(), .name = name, .content = "x"};
  EXPECT_EQ(replace(it, "write name", [] { return true; }).error().kind, Kind::not_a_file);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
}

// What the guest put there after the look is replaced, not followed.
TEST(Create, replaces_a_symlink_and_does_not_follow_it) {
  const belljar::testing::WorkspaceFolders folders;
  folders.link("name", folders.outside.path() + "/secret");
  const Fd fd = *open_path(folders.inside.path().c_str(), O_PATH);
  const std::string name = "name";
  EXPECT_TRUE(replace({.folder_fd = fd.get(), .name = name, .content = "x"}, "write name",
                      [] { return true; }));
  EXPECT_EQ(folders.outside.read("secret"), "the secret\n");
  EXPECT_FALSE(fs::is_symlink(folders / "name"));
  EXPECT_EQ(folders.inside.read("name"), "x");
}

}  // namespace
}  // namespace belljar::tools
