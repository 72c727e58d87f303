#include "session/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <climits>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/remove_tree.h"

namespace belljar::session {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

class Files : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "belljar-files-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    workdir_ = Fd(::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  void TearDown() override { remove_tree(folder_); }

  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  Snapshot now() const { return take_snapshot(workdir_.get(), sight_); }
  std::vector<std::string> changed_since(const Snapshot& before,
                                         const std::vector<std::string>& wanted = {}) const {
    std::vector<std::string> names;
    for (const SessionFile& file :
         changed_files(workdir_.get(), sight_, before, now(), wanted, limits_).files)
      names.push_back(file.name);
    return names;
  }

  fs::path folder_;
  Fd workdir_;
  Sight sight_;
  FileLimits limits_{.one = 1000, .total = 1500};
};

TEST_F(Files, that_are_new_or_changed_are_found) {
  write("old", "1");
  write("changes", "1");
  const Snapshot before = now();
  write("changes", "22");
  write("sub/new.csv", "a,b");
  EXPECT_THAT(changed_since(before), ElementsAre("changes", "sub/new.csv"));
}

TEST_F(Files, with_a_forged_time_are_found) {
  write("file", "1");
  const Snapshot before = now();
  const fs::file_time_type time = fs::last_write_time(folder_ / "file");
  write("file", "2");
  fs::last_write_time(folder_ / "file", time);
  EXPECT_THAT(changed_since(before), ElementsAre("file"));
}

TEST_F(Files, come_with_their_content_as_text_or_bytes) {
  const Snapshot before = now();
  write("a.json", "{}");
  write("b.png", std::string("\xff\x00\x01", 3));
  const std::vector<SessionFile> files =
      changed_files(workdir_.get(), sight_, before, now(), {}, limits_).files;
  ASSERT_EQ(files.size(), 2U);
  EXPECT_TRUE(files[0].is_text);
  EXPECT_EQ(files[0].content, "{}");
  EXPECT_EQ(files[0].mime, "application/json");
  EXPECT_FALSE(files[1].is_text);
  EXPECT_EQ(files[1].mime, "image/png");
}

TEST_F(Files, that_are_too_large_come_without_content) {
  const Snapshot before = now();
  write("a", std::string(1000, 'a'));
  write("b", std::string(1000, 'b'));  // beyond the sum
  write("c", std::string(1001, 'c'));
  write("d", std::string(500, 'd'));
  const std::vector<SessionFile> files =
      changed_files(workdir_.get(), sight_, before, now(), {}, limits_).files;
  ASSERT_EQ(files.size(), 4U);
  EXPECT_TRUE(files[0].has_content);
  EXPECT_FALSE(files[1].has_content);
  EXPECT_EQ(files[1].size, 1000U);
  EXPECT_FALSE(files[2].has_content);
  EXPECT_TRUE(files[3].has_content);
}

TEST_F(Files, that_lead_elsewhere_or_block_are_passed_over) {
  const Snapshot before = now();
  fs::create_symlink("/etc/passwd", folder_ / "link");
  fs::create_directory_symlink("/etc", folder_ / "etc");
  ASSERT_EQ(::mkfifo((folder_ / "fifo").c_str(), 0600), 0);
  EXPECT_THAT(changed_since(before, {"link", "etc/passwd", "fifo", "../", "/etc/passwd",
                                     folder_.string() + "/x", ""}),
              IsEmpty());
}

TEST_F(Files, of_tools_are_left_out_unless_they_are_wanted) {
  const Snapshot before = now();
  write(".hidden", "1");
  write("__pycache__/x.pyc", "1");
  write("node_modules/a/index.js", "1");
  EXPECT_THAT(changed_since(before), IsEmpty());
  EXPECT_THAT(changed_since(before, {".hidden"}), ElementsAre(".hidden"));
}

TEST_F(Files, that_are_wanted_and_not_there_are_named) {
  write("there", "1");
  const Snapshot before = now();
  const std::vector<std::string> wanted = {"there", "missing", std::string("there\0x", 7)};
  const Changes changes = changed_files(workdir_.get(), sight_, before, now(), wanted, limits_);
  ASSERT_EQ(changes.files.size(), 1U);
  EXPECT_THAT(changes.missing, ElementsAre("missing", std::string("there\0x", 7)));
}

TEST_F(Files, of_a_tree_of_empty_folders_are_not_looked_for_without_end) {
  for (int i = 0; i < 100; ++i)
    for (int j = 0; j < 10; ++j)
      fs::create_directories(folder_ / std::to_string(i) / std::to_string(j));
  EXPECT_TRUE(take_snapshot(workdir_.get(), sight_, 500).more);
  EXPECT_FALSE(take_snapshot(workdir_.get(), sight_, 1100).more);
}

// A tree of folders with the longest names, one in the other; where it ends.
Fd make_deep_folder(int at_fd, int depth) {
  const std::string name(NAME_MAX, 'd');
  Fd at(::fcntl(at_fd, F_DUPFD_CLOEXEC, 0));
  for (int i = 0; i < depth; ++i) {
    if (!at || ::mkdirat(at.get(), name.c_str(), 0700) < 0) return {};
    at = Fd(::openat(at.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  return at;
}

TEST_F(Files, with_long_names_cost_no_more_memory_than_others) {
  const Fd deep = make_deep_folder(workdir_.get(), 12);
  ASSERT_TRUE(deep);
  constexpr int kFiles = 2'000;
  for (int i = 0; i < kFiles; ++i) {
    const std::string name = std::string(200, 'f') + std::to_string(i);
    ASSERT_EQ(::mknodat(deep.get(), name.c_str(), S_IFREG | 0600, 0), 0);
  }
  const Snapshot snapshot = now();
  EXPECT_TRUE(snapshot.more);
  std::size_t bytes = 0;
  for (const auto& [path, version] : snapshot.files) bytes += path.size();
  EXPECT_LE(bytes, 4U << 20);
  EXPECT_GT(snapshot.files.size(), 1'000U);
}

TEST_F(Files, whose_path_is_too_long_are_said_to_be_more) {
  const Fd deep = make_deep_folder(workdir_.get(), 16);
  ASSERT_TRUE(deep);
  ASSERT_EQ(::mknodat(deep.get(), "file", S_IFREG | 0600, 0), 0);
  write("seen", "1");
  const Snapshot snapshot = now();
  EXPECT_TRUE(snapshot.more);
  EXPECT_EQ(snapshot.files.size(), 1U);
}

// ---- what the guest does not see ----

class SeenFiles : public Files {
 protected:
  // A workdir that is shown at /workspace.
  void SetUp() override {
    Files::SetUp();
    layout_.workdir = "/workspace";
    place(folder_, "/workspace", Access::write);
  }
  void place(const fs::path& path, std::string inside, Access access) {
    struct stat st{};
    ASSERT_EQ(::lstat(path.c_str(), &st), 0);
    layout_.places.push_back({.path = fs::canonical(path),
                              .inside = std::move(inside),
                              .access = access,
                              .from = {},
                              .fd = {},
                              .st = st,
                              .owned = true});
  }
  void look(std::optional<uid_t> jar_uid = {}) { sight_ = Sight(layout_, workdir_.get(), jar_uid); }
  Layout layout_;
};

TEST_F(SeenFiles, that_are_hidden_are_neither_listed_nor_returned) {
  write("key.pem", "1");
  write("sub/inner", "1");
  place(folder_ / "key.pem", "/workspace/key.pem", Access::hide);
  place(folder_ / "sub", "/workspace/sub", Access::hide);
  look();
  const Snapshot before = now();
  write("key.pem", "22");
  write("sub/inner", "22");
  write("seen", "22");
  EXPECT_THAT(changed_since(before), ElementsAre("seen"));
  EXPECT_THAT(changed_since(before, {"key.pem", "sub/inner", "./sub//inner", "seen/../key.pem"}),
              ElementsAre("seen"));
}

TEST_F(SeenFiles, that_are_hidden_stay_so_under_another_name_or_inode) {
  write("key.pem", "1");
  place(folder_ / "key.pem", "/workspace/key.pem", Access::hide);
  look();
  const Snapshot before = now();
  fs::create_hard_link(folder_ / "key.pem", folder_ / "other");
  write("saved", "22");
  fs::rename(folder_ / "saved", folder_ / "key.pem");  // as editors save
  EXPECT_THAT(changed_since(before, {"other", "key.pem"}), IsEmpty());
}

TEST_F(SeenFiles, that_something_else_is_mounted_on_are_not_returned) {
  write("home/mine", "1");
  layout_.private_dirs.push_back({.inside = "/workspace/home"});
  look();
  EXPECT_THAT(changed_since({}, {"home/mine"}), IsEmpty());
}

TEST_F(SeenFiles, that_a_guest_with_another_uid_may_not_read_come_without_content) {
  write("mine", "1");
  write("shut", "1");
  write("folder/inner", "1");
  write("listed/inner", "1");
  ASSERT_EQ(::chmod((folder_ / "shut").c_str(), 0), 0);
  ASSERT_EQ(::chmod((folder_ / "folder").c_str(), 0000), 0);
  ASSERT_EQ(::chmod((folder_ / "listed").c_str(), 0711), 0);
  look(1'879'048'200);
  EXPECT_THAT(changed_since({}), ElementsAre("listed/inner", "mine", "shut"));
  const Changes changes =
      changed_files(workdir_.get(), sight_, {}, now(), {"mine", "shut", "folder/inner"}, limits_);
  EXPECT_THAT(changes.missing, ElementsAre("shut", "folder/inner"));
  // Where the folder is not shown as its own it is one of the others.
  layout_.places[0].owned = false;
  ASSERT_EQ(::chmod((folder_ / "mine").c_str(), 0640), 0);
  look(1'879'048'200);
  EXPECT_THAT(
      changed_files(workdir_.get(), sight_, {}, now(), {"mine", "listed/inner"}, limits_).missing,
      ElementsAre("mine"));
  ASSERT_EQ(::chmod((folder_ / "folder").c_str(), 0700), 0);
}

TEST_F(Files, beyond_a_number_are_said_to_be_more) {
  for (int i = 0; i < 20'001; ++i) write("f" + std::to_string(i), "");
  EXPECT_TRUE(now().more);
}

}  // namespace
}  // namespace belljar::session
