#include "plan/paths.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace belljar {
namespace {

namespace fs = std::filesystem;

// Somebody else for a while, whose the folder then is.
class NotRoot {
 public:
  explicit NotRoot(const fs::path& folder) {
    if (before_ != 0) return;
    EXPECT_EQ(::chown(folder.c_str(), kNobody, kNobody), 0);
    for (const auto& entry : fs::directory_iterator(folder))
      EXPECT_EQ(::chown(entry.path().c_str(), kNobody, kNobody), 0);
    EXPECT_EQ(::seteuid(kNobody), 0);
  }
  NotRoot(const NotRoot&) = delete;
  NotRoot& operator=(const NotRoot&) = delete;
  ~NotRoot() { EXPECT_EQ(::seteuid(before_), 0); }

 private:
  static constexpr uid_t kNobody = 65534;
  uid_t before_ = ::geteuid();
};

class Paths : public testing::Test {
 protected:
  Paths() {
    std::string made = testing::TempDir() + "paths_XXXXXX";
    folder_ = ::mkdtemp(made.data());
    for (const char* name : {"a", "b", "b/c"}) fs::create_directory(folder_ / name);
    for (const char* name : {"a/.env", "b/.env", "b/c/.env"}) std::ofstream(folder_ / name) << "x";
  }
  void TearDown() override {
    fs::permissions(folder_ / "b", fs::perms::owner_all);
    fs::remove_all(folder_);
  }
  fs::path folder_;
};

TEST_F(Paths, a_glob_finds_all_or_says_so) {
  const std::string pattern = (folder_ / "**/.env").string();
  Found found = expand_glob(pattern);
  EXPECT_EQ(found.paths.size(), 3U);
  EXPECT_TRUE(found.complete);
  EXPECT_FALSE(expand_glob(pattern, 3).complete);
  EXPECT_TRUE(expand_glob((folder_ / "nowhere/*").string()).complete);
}

TEST_F(Paths, a_glob_that_may_not_look_everywhere_says_so) {
  fs::permissions(folder_ / "b", fs::perms::none);
  const NotRoot not_root(folder_);  // who may look everywhere
  EXPECT_FALSE(expand_glob((folder_ / "**/.env").string()).complete);
  EXPECT_FALSE(expand_glob((folder_ / "*/.env").string()).complete);
  EXPECT_FALSE(expand_glob((folder_ / "b/*").string()).complete);
  EXPECT_FALSE(linked_files(folder_).complete);
}

TEST_F(Paths, linked_files_are_all_or_said_not_to_be) {
  fs::create_hard_link(folder_ / "a/.env", folder_ / "b/other");
  LinkedFiles linked = linked_files(folder_);
  EXPECT_EQ(linked.files.size(), 2U);
  EXPECT_TRUE(linked.complete);
  EXPECT_FALSE(linked_files(folder_, 3).complete);
  LinkedFiles names = names_of({linked.files[0].st}, folder_ / "b");
  ASSERT_EQ(names.files.size(), 1U);
  EXPECT_EQ(names.files[0].path, folder_ / "b/other");
}

TEST_F(Paths, what_was_replaced_by_a_symlink_is_not_opened) {
  Result<Traced> traced = trace((folder_ / "b/c").string());
  ASSERT_TRUE(traced);
  EXPECT_TRUE(open_traced(traced->path, traced->st));
  // The same folder, by way of a symlink.
  fs::rename(folder_ / "b", folder_ / "moved");
  fs::create_symlink("moved", folder_ / "b");
  Result<Fd> opened = open_traced(traced->path, traced->st);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().err, ESTALE);
}

}  // namespace
}  // namespace belljar
