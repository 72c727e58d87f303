#include "plan/scratch.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

namespace belljar {
namespace {

namespace fs = std::filesystem;

// The number of a process that has ended.
std::string ended_process() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  return std::to_string(child);
}

// As made here, but by that process.
fs::path made_by(const std::string& pid, const fs::path& like) {
  const std::string own = "belljar-" + std::to_string(::getpid());
  const std::string name = like.filename();
  return like.parent_path() / ("belljar-" + pid + name.substr(own.size()));
}

TEST(Scratch, what_a_killed_process_left_is_removed) {
  const fs::path own = make_scratch_folder().value();
  const fs::path stale = made_by(ended_process(), own);
  fs::create_directories(stale / "sub");
  remove_stale_scratch_folders();
  EXPECT_FALSE(fs::exists(stale));
  EXPECT_TRUE(fs::exists(own)) << "it is in use";
  fs::remove(own);
}

TEST(Scratch, a_persons_folders_with_similar_names_stay) {
  const fs::path own = make_scratch_folder().value();
  const std::string pid = ended_process();
  const std::string like = made_by(pid, own).string();
  const std::vector<fs::path> folders = {"/tmp/belljar-" + pid + "-my-notes",
                                         "/tmp/belljar-" + pid + "beta",
                                         "/tmp/belljar-" + pid + "-1-abcdef",  // counted elsewhere
                                         like + "x", like.substr(0, like.size() - 1) + "-"};
  for (const fs::path& folder : folders) fs::create_directories(folder);
  remove_stale_scratch_folders();
  for (const fs::path& folder : folders) {
    EXPECT_TRUE(fs::exists(folder)) << folder;
    fs::remove(folder);
  }
  fs::remove(own);
}

}  // namespace
}  // namespace belljar
