#include "base/remove_tree.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/fd.h"

namespace belljar {
namespace {

namespace fs = std::filesystem;

class RemoveTree : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "belljar-tree-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { remove_tree(folder_); }

  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text;
  }

  fs::path folder_;
};

TEST_F(RemoveTree, removes_folders_of_any_mode) {
  write("a/b/c", "1");
  fs::permissions(folder_ / "a" / "b", fs::perms::none);
  fs::permissions(folder_ / "a", fs::perms::none);
  remove_tree(folder_);
  EXPECT_FALSE(fs::exists(fs::symlink_status(folder_)));
}

TEST_F(RemoveTree, removes_folders_of_any_depth) {
  Fd at(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int i = 0; i < 3000; ++i) {
    ASSERT_TRUE(at);
    ASSERT_EQ(::mkdirat(at.get(), "deep", 0700), 0);
    at = Fd(::openat(at.get(), "deep", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  remove_tree(folder_);
  EXPECT_FALSE(fs::exists(fs::symlink_status(folder_)));
}

TEST_F(RemoveTree, stops_when_it_is_given_up_and_another_goes_on) {
  for (const char* name : {"a/b/1", "a/b/2", "a/3", "4"}) write(name, "1");
  int left = 3;
  remove_tree(folder_, [&] { return left-- == 0; });
  EXPECT_TRUE(fs::exists(folder_));
  EXPECT_EQ(left, -1) << "once is enough to be told";
  remove_tree(folder_, [] { return false; });
  EXPECT_FALSE(fs::exists(fs::symlink_status(folder_)));
}

TEST_F(RemoveTree, follows_no_symlink) {
  write("outside/keep", "1");
  const fs::path inside = folder_ / "inside";
  fs::create_directory(inside);
  fs::create_directory_symlink(folder_ / "outside", inside / "link");
  remove_tree(inside);
  EXPECT_TRUE(fs::exists(folder_ / "outside" / "keep"));
  fs::create_directory_symlink(folder_ / "outside", inside);
  remove_tree(inside);
  EXPECT_TRUE(fs::exists(folder_ / "outside" / "keep"));
}

}  // namespace
}  // namespace belljar
