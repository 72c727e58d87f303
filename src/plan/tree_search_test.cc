#include "plan/tree_search.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/fd.h"
#include "base/remove_tree.h"

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

class TreeSearch : public testing::Test {
 protected:
  TreeSearch() {
    std::string made = testing::TempDir() + "trees_XXXXXX";
    folder_ = ::mkdtemp(made.data());
    for (const char* name : {"a", "b", "b/c"}) fs::create_directory(folder_ / name);
    for (const char* name : {"a/.env", "b/.env", "b/c/.env"}) std::ofstream(folder_ / name) << "x";
  }
  void TearDown() override { remove_tree(folder_); }

  std::string at(const char* path) const { return (folder_ / path).string(); }

  // Folders within one another, the last of which is returned.
  Fd nest(const std::string& name, int levels) const {
    Fd fd(::open(folder_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    for (int i = 0; i < levels; ++i) {
      EXPECT_EQ(::mkdirat(fd.get(), name.c_str(), 0700), 0);
      fd = Fd(::openat(fd.get(), name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    }
    return fd;
  }
  fs::path folder_;
};

TEST_F(TreeSearch, a_glob_finds_all_or_says_so) {
  EXPECT_EQ(expand_glob(at("**/.env")).value().size(), 3U);
  EXPECT_EQ(expand_glob(at("*/.env")).value().size(), 2U);
  EXPECT_EQ(expand_glob(at("b/**")).value().size(), 2U);
  EXPECT_FALSE(expand_glob(at("**/.env"), {}, {.entries = 3}));
  EXPECT_TRUE(expand_glob(at("nowhere/*")).value().empty());
}

TEST_F(TreeSearch, a_folder_that_is_hidden_need_not_be_searched) {
  const std::vector<std::string> hidden{at("b")};
  EXPECT_EQ(expand_glob(at("**/.env"), hidden).value(), std::vector{at("a/.env")});
}

TEST_F(TreeSearch, a_name_that_is_written_out_may_be_a_symlink) {
  fs::create_symlink("../b", folder_ / "a/current");
  EXPECT_EQ(expand_glob(at("*/current/.env")).value(), std::vector{at("a/current/.env")});
  EXPECT_EQ(expand_glob(at("**/.env")).value().size(), 3U) << "wildcards follow none";
}

// The guest may change the mode back.
TEST_F(TreeSearch, a_folder_of_ours_that_is_closed_is_told_with_what_to_do) {
  for (const mode_t mode : {0000U, 0100U, 0200U, 0300U, 0400U, 0600U}) {
    ASSERT_EQ(::chmod(at("b").c_str(), mode), 0);
    const NotRoot not_root(folder_);  // who may look everywhere
    for (const char* pattern : {"**/.env", "*/*/.env", "b/c/*"}) {
      // Whoever may search a folder finds a name in it without listing it.
      if (mode == 0100 && std::string_view(pattern) == "b/c/*") continue;
      if (mode == 0300 && std::string_view(pattern) == "b/c/*") continue;
      const Result<std::vector<std::string>> found = expand_glob(at(pattern));
      ASSERT_FALSE(found) << pattern << " of mode " << mode;
      EXPECT_EQ(found.error().err, EACCES);
      EXPECT_EQ(found.error().hint, "chmod u+rwx " + at("b"));
    }
    EXPECT_FALSE(linked_files(folder_));
    EXPECT_FALSE(linked_files_but_closed(folder_));
  }
}

TEST_F(TreeSearch, a_closed_folder_of_another_is_refused_or_named) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs two users";
  ASSERT_EQ(::chmod(at("b").c_str(), 0700), 0);
  ASSERT_EQ(::chmod(folder_.c_str(), 0755), 0);
  ASSERT_EQ(::seteuid(65534), 0);
  const Result<std::vector<std::string>> found = expand_glob(at("**/.env"));
  const Result<OpenPart> open = linked_files_but_closed(folder_);
  ASSERT_EQ(::seteuid(0), 0);
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().hint.find("--hide=" + at("b")), std::string::npos) << found.error().hint;
  ASSERT_TRUE(open);
  EXPECT_EQ(open->closed, std::vector{at("b")});
}

TEST_F(TreeSearch, linked_files_are_all_or_said_not_to_be) {
  fs::create_hard_link(folder_ / "a/.env", folder_ / "b/other");
  EXPECT_EQ(linked_files(folder_).value().size(), 2U);
  EXPECT_FALSE(linked_files(folder_, {}, {.entries = 3}));
  const std::vector<LinkedFile> names = linked_files(at("b")).value();
  ASSERT_EQ(names.size(), 1U);
  EXPECT_EQ(names[0].path, at("b/other"));
}

TEST_F(TreeSearch, a_path_longer_than_path_max_is_searched_too) {
  const Fd deepest = nest(std::string(250, 'n'), 20);
  ASSERT_EQ(::linkat(AT_FDCWD, at("a/.env").c_str(), deepest.get(), "key.pem", 0), 0);
  const std::vector<std::string> found = expand_glob(at("**/*.pem")).value();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_GT(found[0].size(), 4096U);
  EXPECT_EQ(linked_files(folder_).value().size(), 2U);
}

TEST_F(TreeSearch, what_lies_too_deep_is_refused) {
  nest("n", 300);
  const Result<std::vector<std::string>> found = expand_glob(at("**/*.pem"));
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().what.find("within one another"), std::string::npos) << found.error().what;
}

}  // namespace
}  // namespace belljar
