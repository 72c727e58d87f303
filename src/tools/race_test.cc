// A guest that swaps a part of a path while a tool is on its way along it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "support/workspace.h"
#include "tools/edit.h"
#include "tools/read.h"
#include "tools/write.h"

namespace belljar::tools {
namespace {

namespace fs = std::filesystem;

constexpr int kFlips = 100'000;

// `inside/turn` is by turns a folder and a symlink that leads out; both hold a `file`.
class RaceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folders_.folder("turn");
    folders_.inside.write("turn/file", "inside\n");
    folders_.outside.write("file", "outside\n");
    folders_.link("other", folders_.outside.path());
  }

  // Calls `attempt` for as long as it takes to swap the two that often.
  template <class Attempt>
  void while_it_flips(Attempt attempt) {
    std::atomic<bool> over = false;
    std::jthread flips([&] {
      const std::string turn = folders_ / "turn";
      const std::string other = folders_ / "other";
      for (int i = 0; i < kFlips; ++i) {
        if (::renameat2(AT_FDCWD, turn.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE) != 0)
          std::abort();
      }
      over = true;
    });
    while (!over) attempt();
  }

  belljar::testing::WorkspaceFolders folders_;
};

// The control: who asks where a path leads and then opens it is caught.
TEST_F(RaceTest, a_check_before_an_open_is_fooled) {
  std::uint64_t fooled = 0;
  const fs::path path = folders_ / "turn/file";
  const std::string inside = fs::canonical(folders_.inside.path());
  while_it_flips([&] {
    std::error_code gone;
    const fs::path real = fs::canonical(path, gone);
    if (gone || !real.string().starts_with(inside)) return;
    const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    char first = 0;
    if (file && ::read(file.get(), &first, 1) == 1 && first == 'o') ++fooled;
  });
  EXPECT_GT(fooled, 0U);
}

TEST_F(RaceTest, read_never_gets_out) {
  const Workspace workspace = folders_.open();
  std::uint64_t reads = 0;
  std::uint64_t refused = 0;
  while_it_flips([&] {
    const Result<ReadResult> result = read(workspace, {.path = "turn/file"});
    if (result) {
      ASSERT_EQ(result->text, "1: inside\n");
      ++reads;
    } else {
      ASSERT_EQ(result.error().kind, Kind::outside) << result.error().message();
      ++refused;
    }
  });
  EXPECT_GT(reads, 0U);
  EXPECT_GT(refused, 0U);  // it met both
}

TEST_F(RaceTest, write_and_edit_never_get_out) {
  const Workspace workspace = folders_.open();
  std::uint64_t written = 0;
  std::uint64_t refused = 0;
  int turn = 0;
  while_it_flips([&] {
    const std::string number = std::to_string(++turn % 3);
    const bool done =
        turn % 3 == 0
            ? write(workspace, {.path = "turn/new/" + number, .content = "mine\n"}).has_value()
        : turn % 3 == 1
            ? write(workspace, {.path = "turn/file", .content = "inside\n"}).has_value()
            : edit(workspace, {.path = "turn/file", .old_string = "side", .new_string = "side!"})
                  .has_value();
    ++(done ? written : refused);
  });
  EXPECT_GT(written, 0U);
  EXPECT_GT(refused, 0U);
  EXPECT_EQ(folders_.outside.read("file"), "outside\n");
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folders_.outside.path()))
    names.push_back(entry.path().filename());
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{"file", "secret"}));
}

// The last name of a path: by turns a file and a symlink to a file outside.
TEST_F(RaceTest, the_last_name_leads_nowhere_else_either) {
  fs::remove_all(folders_ / "turn");
  fs::remove(folders_ / "other");
  folders_.inside.write("turn", "inside\n");
  folders_.link("other", folders_.outside.path() + "/file");
  const Workspace workspace = folders_.open();
  std::uint64_t reads = 0;
  while_it_flips([&] {
    const Result<ReadResult> result = read(workspace, {.path = "turn"});
    if (result) {
      ASSERT_EQ(result->text.substr(0, 9), "1: inside");
      ++reads;
    }
    (void)edit(workspace, {.path = "turn", .old_string = "\n", .new_string = "!\n"});
  });
  EXPECT_GT(reads, 0U);
  EXPECT_EQ(folders_.outside.read("file"), "outside\n");
}

}  // namespace
}  // namespace belljar::tools
