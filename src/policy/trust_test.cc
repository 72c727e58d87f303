#include "policy/trust.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/sha256.h"

namespace belljar {
namespace {

namespace fs = std::filesystem;

class Trust : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "belljar-trust-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
    file_ = root_ / "state/belljar/trusted";
  }
  void TearDown() override { fs::remove_all(root_); }

  fs::path root_;
  std::string file_;
  const std::string hash_ = sha256_hex("content");
};

TEST_F(Trust, without_a_file_nothing_is_trusted) {
  EXPECT_EQ(read_trusted(file_).value(), std::vector<Trusted>{});
}

TEST_F(Trust, is_by_path_and_content) {
  ASSERT_TRUE(trust(file_, {hash_, "/p/belljar.toml"}));
  auto all = read_trusted(file_).value();
  EXPECT_TRUE(is_trusted(all, "/p/belljar.toml", hash_));
  EXPECT_FALSE(is_trusted(all, "/q/belljar.toml", hash_));
  EXPECT_FALSE(is_trusted(all, "/p/belljar.toml", sha256_hex("other")));
}

TEST_F(Trust, the_newest_content_replaces_the_older) {
  ASSERT_TRUE(trust(file_, {hash_, "/p"}));
  ASSERT_TRUE(trust(file_, {sha256_hex("new"), "/p"}));
  EXPECT_EQ(read_trusted(file_).value(), (std::vector<Trusted>{{sha256_hex("new"), "/p"}}));
}

TEST_F(Trust, can_be_revoked) {
  ASSERT_TRUE(trust(file_, {hash_, "/p"}));
  EXPECT_EQ(revoke(file_, "/other"), false);
  EXPECT_EQ(revoke(file_, "/p"), true);
  EXPECT_TRUE(read_trusted(file_).value().empty());
}

TEST_F(Trust, is_the_persons_alone) {
  ASSERT_TRUE(trust(file_, {hash_, "/p"}));
  struct stat st{};
  ASSERT_EQ(::stat(file_.c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777U, 0600U);
  fs::permissions(file_, fs::perms::group_write, fs::perm_options::add);
  EXPECT_FALSE(read_trusted(file_));
}

TEST_F(Trust, a_damaged_file_is_an_error) {
  ASSERT_TRUE(trust(file_, {hash_, "/p"}));
  std::ofstream(file_, std::ios::app) << "half a li";
  EXPECT_FALSE(read_trusted(file_));
}

TEST_F(Trust, a_line_cannot_be_forged_by_a_path) {
  EXPECT_FALSE(trust(file_, {hash_, "/p\n" + hash_ + "  /q"}));
}

TEST_F(Trust, two_at_a_time_lose_nothing) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] { EXPECT_TRUE(trust(file_, {hash_, "/p" + std::to_string(i)})); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(read_trusted(file_).value().size(), 8U);
}

}  // namespace
}  // namespace belljar
