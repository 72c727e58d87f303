#include "base/account.h"

#include <gtest/gtest.h>

namespace belljar {
namespace {

constexpr const char* kPasswd =
    "root:x:0:0:root:/root:/bin/bash\n"
    "10:x:1:10:a name that is a number:/ten:/bin/sh\n"
    "ann:x:10:100:Ann,,,:/home/ann:/bin/sh\n"
    "also-ann:x:10:100::/home/other:/bin/sh\n"
    "bare:x:11:11::\n"
    "strange:x:12:12::relative:/bin/sh\n"
    "last:x:13:13::/last";

TEST(Account, is_found_by_its_uid) {
  EXPECT_EQ(find_account(kPasswd, 0)->home, "/root");
  EXPECT_EQ(find_account(kPasswd, 10)->name, "ann");
  EXPECT_EQ(find_account(kPasswd, 10)->home, "/home/ann");
  EXPECT_EQ(find_account(kPasswd, 13)->home, "/last");
}

TEST(Account, has_a_home_only_by_an_absolute_path) {
  EXPECT_EQ(find_account(kPasswd, 11)->home, "");
  EXPECT_EQ(find_account(kPasswd, 12)->home, "");
}

TEST(Account, that_is_not_there_is_none) {
  EXPECT_FALSE(find_account(kPasswd, 14));
  EXPECT_FALSE(find_account("", 0));
  EXPECT_FALSE(find_account("\n:::\nroot", 0));
}

}  // namespace
}  // namespace belljar
