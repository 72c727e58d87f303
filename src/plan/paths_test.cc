#include "plan/paths.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace belljar {
namespace {

namespace fs = std::filesystem;

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
