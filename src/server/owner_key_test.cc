#include "server/owner_key.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "support/folder.h"

namespace belljar::server {
namespace {

class OwnerKeyTest : public ::testing::Test {
 protected:
  OwnerKeyTest() { std::ofstream(socket_) << ""; }

  std::size_t keys() const {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      if (entry.path().filename().string().starts_with("key-")) ++count;
    return count;
  }

  testing::Folder folder_;
  std::string socket_ = folder_.path() + "/s.sock";
};

TEST_F(OwnerKeyTest, is_read_by_who_finds_the_socket_and_ends_with_the_server) {
  const OwnerKey key;
  {
    const Result<KeyFile> file = key.put(folder_.path(), socket_);
    ASSERT_TRUE(file);
    std::filesystem::create_symlink(socket_, folder_.path() + "/link");
    for (const std::string& path : {socket_, folder_.path() + "/link"}) {
      const Result<std::string> read = read_owner_key({folder_.path()}, path);
      ASSERT_TRUE(read);
      EXPECT_TRUE(key.is(*read));
    }
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      struct stat about{};
      if (!entry.path().filename().string().starts_with("key-")) continue;
      EXPECT_EQ(::stat(entry.path().c_str(), &about), 0);
      EXPECT_EQ(about.st_mode & 0777, 0600U);
    }
  }
  EXPECT_EQ(keys(), 0U);
  EXPECT_FALSE(read_owner_key({folder_.path()}, socket_));
}

TEST_F(OwnerKeyTest, nothing_else_is_it) {
  const OwnerKey key;
  EXPECT_FALSE(key.is(""));
  const Result<KeyFile> file = key.put(folder_.path(), socket_);
  ASSERT_TRUE(file);
  std::string text = *read_owner_key({folder_.path()}, socket_);
  EXPECT_FALSE(OwnerKey().is(text)) << "each start has its own";
  text.back() = text.back() == '0' ? '1' : '0';
  EXPECT_FALSE(key.is(text));
}

TEST_F(OwnerKeyTest, a_dead_servers_is_swept_and_a_living_ones_is_not) {
  const OwnerKey key;
  const Result<KeyFile> file = key.put(folder_.path(), socket_);
  ASSERT_TRUE(file);
  std::ofstream(folder_.path() + "/key-1-2") << "of a server that was killed";
  sweep_keys(folder_.path());
  EXPECT_EQ(keys(), 1U);
  EXPECT_TRUE(read_owner_key({folder_.path()}, socket_));
}

TEST_F(OwnerKeyTest, what_could_be_more_than_one_line_is_no_key) {
  const OwnerKey key;
  const Result<KeyFile> file = key.put(folder_.path(), socket_);
  ASSERT_TRUE(file);
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
    if (entry.path().filename().string().starts_with("key-"))
      std::ofstream(entry.path()) << "a\r\nHost: b\n";
  EXPECT_FALSE(read_owner_key({folder_.path()}, socket_));
}

}  // namespace
}  // namespace belljar::server
