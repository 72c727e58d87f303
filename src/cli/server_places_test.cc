#include "cli/server_places.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace belljar::cli {
namespace {

using ::testing::Test;

struct RuntimePlaces : Test {
  RuntimePlaces() {
    std::string name = ::testing::TempDir() + "logins-XXXXXX";
    logins = ::mkdtemp(name.data());
    login = logins + "/" + std::to_string(::geteuid());
  }
  RuntimePlaces(const RuntimePlaces&) = delete;
  RuntimePlaces& operator=(const RuntimePlaces&) = delete;
  ~RuntimePlaces() override { std::filesystem::remove_all(logins); }
  std::string logins, login;
  const std::string below_tmp = "/tmp/belljar-run-" + std::to_string(::geteuid());
  using Places = std::vector<std::string>;
};

TEST_F(RuntimePlaces, what_the_variable_says_comes_first) {
  ASSERT_EQ(::mkdir(login.c_str(), 0700), 0);
  EXPECT_EQ(runtime_places("/given", logins),
            (Places{"/given/belljar", login + "/belljar", below_tmp}));
}

TEST_F(RuntimePlaces, without_the_variable_it_is_the_folder_of_the_login) {
  ASSERT_EQ(::mkdir(login.c_str(), 0700), 0);
  for (const char* given : {"", "relative"})
    EXPECT_EQ(runtime_places(given, logins), (Places{login + "/belljar", below_tmp})) << given;
}

TEST_F(RuntimePlaces, a_server_with_and_a_person_without_the_variable_meet) {
  ASSERT_EQ(::mkdir(login.c_str(), 0700), 0);
  EXPECT_EQ(runtime_places(login, logins), runtime_places("", logins));
}

TEST_F(RuntimePlaces, without_a_login_it_is_below_tmp) {
  EXPECT_EQ(runtime_places("", logins), Places{below_tmp});
}

TEST_F(RuntimePlaces, a_login_folder_in_which_others_can_write_is_none) {
  ASSERT_EQ(::mkdir(login.c_str(), 0700), 0);
  ASSERT_EQ(::chmod(login.c_str(), 0720), 0);
  EXPECT_EQ(runtime_places("", logins), Places{below_tmp});
}

TEST_F(RuntimePlaces, a_link_in_place_of_the_login_folder_is_none) {
  ASSERT_EQ(::symlink("/tmp", login.c_str()), 0);
  EXPECT_EQ(runtime_places("", logins), Places{below_tmp});
}

}  // namespace
}  // namespace belljar::cli
