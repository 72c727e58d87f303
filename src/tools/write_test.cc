#include "tools/write.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "support/workspace.h"

namespace belljar::tools {
namespace {

namespace fs = std::filesystem;
using belljar::testing::mode_of;
using belljar::testing::set_mode;

class WriteTest : public ::testing::Test {
 protected:
  void SetUp() override { set_mode(folders_.inside.path(), 0755); }
  WriteResult put(const std::string& path, const std::string& content) const {
    Result<WriteResult> result = write(folders_.open(), {.path = path, .content = content});
    EXPECT_TRUE(result) << result.error().message();
    return result.value_or(WriteResult{});
  }
  static Kind fails(const Workspace& workspace, const std::string& path) {
    const Result<WriteResult> result = write(workspace, {.path = path, .content = "x"});
    EXPECT_FALSE(result) << path;
    EXPECT_FALSE(result.error().hint.empty()) << result.error().message();
    return result.error().kind;
  }
  Kind fails(const std::string& path) const { return fails(folders_.open(), path); }
  mode_t mode(const std::string& name) const { return mode_of(folders_ / name); }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(folders_.inside.path()))
      found.push_back(fs::relative(entry.path(), folders_.inside.path()));
    return found;
  }

  belljar::testing::WorkspaceFolders folders_;
};

TEST_F(WriteTest, makes_a_file_and_its_folders) {
  const WriteResult result = put("a/b/c", "text\n");
  EXPECT_TRUE(result.created);
  EXPECT_EQ(result.path, "/workspace/a/b/c");
  EXPECT_EQ(result.bytes, 5U);
  EXPECT_EQ(folders_.inside.read("a/b/c"), "text\n");
  EXPECT_THAT(names(), ::testing::UnorderedElementsAre("a", "a/b", "a/b/c"));
}

TEST_F(WriteTest, replaces_a_file_and_keeps_its_mode) {
  put("run.sh", "one");
  set_mode(folders_ / "run.sh", 0751);
  EXPECT_FALSE(put("run.sh", "two").created);
  EXPECT_EQ(folders_.inside.read("run.sh"), "two");
  EXPECT_EQ(mode("run.sh"), mode_t{0751});
  EXPECT_THAT(names(), ::testing::ElementsAre("run.sh"));
}

TEST_F(WriteTest, set_id_bits_do_not_pass_to_the_new_content) {
  put("file", "one");
  set_mode(folders_ / "file", 06755);
  put("file", "two");
  EXPECT_EQ(mode("file"), mode_t{0755});
}

TEST_F(WriteTest, new_files_are_open_to_whom_their_folder_is) {
  put("sub/file", "x");
  EXPECT_EQ(mode("sub"), mode_t{0755});
  EXPECT_EQ(mode("sub/file"), mode_t{0644});
  set_mode(folders_.inside.path(), 0700);
  put("private/file", "x");
  EXPECT_EQ(mode("private"), mode_t{0700});
  EXPECT_EQ(mode("private/file"), mode_t{0600});
  set_mode(folders_.inside.path(), 01777);
  put("shared", "x");
  EXPECT_EQ(mode("shared"), mode_t{0664});
}

TEST_F(WriteTest, as_root_files_belong_to_the_owner_of_the_folder) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root makes files for others";
  ASSERT_EQ(::chown(folders_.inside.path().c_str(), 12345, 23456), 0);
  put("a/b", "x");
  put("c", "x");
  for (const char* path : {"a", "a/b", "c"}) {
    struct stat st{};
    ASSERT_EQ(::stat((folders_ / path).c_str(), &st), 0);
    EXPECT_EQ(st.st_uid, 12345U) << path;
    EXPECT_EQ(st.st_gid, 23456U) << path;
  }
  ASSERT_EQ(::chown((folders_ / "c").c_str(), 111, 222), 0);
  put("c", "y");
  struct stat st{};
  ASSERT_EQ(::stat((folders_ / "c").c_str(), &st), 0);
  EXPECT_EQ(st.st_uid, 111U);
}

TEST_F(WriteTest, content_is_taken_as_it_is) {
  const std::string bytes("a\r\n\0\xff no newline", 16);
  put("file", bytes);
  EXPECT_EQ(folders_.inside.read("file"), bytes);
  put("file", "");
  EXPECT_EQ(folders_.inside.read("file"), "");
}

TEST_F(WriteTest, symlinks_within_are_followed_and_stay) {
  folders_.folder("a");
  folders_.link("link", "a/file");  // to nothing yet
  folders_.link("folder", "a");
  EXPECT_EQ(put("link", "x").path, "/workspace/a/file");
  EXPECT_TRUE(fs::is_symlink(folders_ / "link"));
  EXPECT_EQ(folders_.inside.read("a/file"), "x");
  put("folder/new/other", "y");
  EXPECT_EQ(folders_.inside.read("a/new/other"), "y");
}

TEST_F(WriteTest, nothing_is_written_outside) {
  folders_.link("file", folders_.outside.path() + "/secret");
  folders_.link("dangling", folders_.outside.path() + "/new");
  folders_.link("folder", folders_.outside.path());
  const std::string up = "../" + fs::path(folders_.outside.path()).filename().string();
  for (const std::string& path : {std::string("file"), std::string("dangling"),
                                  std::string("folder/new"), std::string("folder/a/b"), up + "/new",
                                  folders_.outside.path() + "/new", std::string("/etc/belljar-x")})
    EXPECT_EQ(fails(path), Kind::outside) << path;
  EXPECT_EQ(folders_.outside.read("secret"), "the secret\n");
  EXPECT_FALSE(fs::exists(folders_.outside.path() + "/new"));
  EXPECT_FALSE(fs::exists(folders_.outside.path() + "/a"));
}

TEST_F(WriteTest, what_is_no_file_is_not_replaced) {
  folders_.folder("folder");
  ASSERT_EQ(::mkfifo((folders_ / "fifo").c_str(), 0600), 0);
  EXPECT_EQ(fails("folder"), Kind::not_a_file);
  EXPECT_EQ(fails("."), Kind::not_a_file);
  EXPECT_EQ(fails("new/"), Kind::not_a_file);
  EXPECT_EQ(fails("fifo"), Kind::not_a_file);
  EXPECT_TRUE(fs::is_fifo(folders_ / "fifo"));
  folders_.inside.write("file", "x");
  EXPECT_EQ(fails("file/below"), Kind::not_a_folder);
  EXPECT_EQ(fails(""), Kind::bad_argument);
}

TEST_F(WriteTest, read_only_places_stay_as_they_are) {
  belljar::testing::Folder skills;
  skills.write("file", "x");
  folders_.folder(".git");
  folders_.inside.write(".git/config", "x");
  folders_.inside.write(".env", "x");
  folders_.link("link", ".git/config");
  const Workspace workspace =
      folders_.open({{.inside = "/skills", .outside = skills.path()},
                     {.inside = "/workspace/.git", .outside = folders_ / ".git"},
                     {.inside = "/workspace/.env", .outside = folders_ / ".env"}});
  for (const char* path : {"/skills/file", "/skills/new", "/skills/a/b", ".git/config", ".git/new",
                           "link", ".git/a/b", ".env"})
    EXPECT_EQ(fails(workspace, path), Kind::read_only) << path;
  EXPECT_EQ(skills.read("file"), "x");
  EXPECT_FALSE(fs::exists(folders_ / ".git/a"));
}

TEST_F(WriteTest, a_root_that_is_a_file_is_written_in_place) {
  belljar::testing::Folder other;
  other.write("log", "long text");
  const Workspace workspace =
      folders_.open({{.inside = "/log", .outside = other.path() + "/log", .writable = true}});
  EXPECT_TRUE(write(workspace, {.path = "/log", .content = "short"}));
  EXPECT_EQ(other.read("log"), "short");
}

TEST_F(WriteTest, rules_are_kept_before_anything_is_made) {
  folders_.folder("real");
  folders_.link("link", "real/closed");
  const Workspace workspace =
      folders_.open({}, *PathRules::make({{PathRule::Says::deny, "closed"},
                                          {PathRule::Says::deny, "*.lock", "write"}}));
  EXPECT_EQ(fails(workspace, "closed/a/b"), Kind::denied_by_rule);
  EXPECT_EQ(fails(workspace, "link/a/b"), Kind::denied_by_rule);
  EXPECT_EQ(fails(workspace, "a.lock"), Kind::denied_by_rule);
  EXPECT_FALSE(fs::exists(folders_ / "closed"));
  EXPECT_FALSE(fs::exists(folders_ / "real/closed"));
}

TEST_F(WriteTest, too_much_is_refused) {
  const Workspace workspace = folders_.open();
  const Result<WriteResult> result =
      write(workspace, {.path = "file", .content = std::string(kMaxWriteBytes + 1, 'x')});
  EXPECT_EQ(result.error().kind, Kind::too_large);
  EXPECT_FALSE(fs::exists(folders_ / "file"));
}

TEST_F(WriteTest, nobody_sees_a_part_of_it) {
  const std::string one(200'000, '1');
  const std::string two(200'000, '2');
  put("file", one);
  std::jthread writes([&](const std::stop_token& stop) {
    const Workspace workspace = folders_.open();
    for (int i = 0; !stop.stop_requested(); ++i)
      (void)write(workspace, {.path = "file", .content = i % 2 == 0 ? two : one});
  });
  for (int i = 0; i < 100; ++i) {
    const std::string seen = folders_.inside.read("file");
    ASSERT_TRUE(seen == one || seen == two);
  }
  writes.request_stop();
  writes.join();
  EXPECT_THAT(names(), ::testing::ElementsAre("file"));  // and nothing is left over
}

}  // namespace
}  // namespace belljar::tools
