#include "plan/mount_table.h"

#include <gtest/gtest.h>

namespace belljar {
namespace {

using Paths = std::vector<std::string>;

constexpr const char* kMounts =
    "20 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n"
    "21 20 0:5 / /proc rw - proc proc rw\n"
    "22 20 8:1 /srv/data /work/again rw - ext4 /dev/sda1 rw\n"
    "23 20 8:1 /srv/data/keys/deep /work/a\\040part rw - ext4 /dev/sda1 rw\n"
    "24 20 8:2 / /mnt rw - ext4 /dev/sdb1 rw\n"
    "25 20 8:1 / /host rw - ext4 /dev/sda1 rw\n"
    "26 25 0:7 / /host/srv rw - tmpfs tmpfs rw\n";

TEST(MountTable, finds_what_a_bind_mount_shows_again) {
  const MountTable table = MountTable::parse(kMounts);
  EXPECT_EQ(table.other_paths("/srv/data/.env"), Paths({"/work/again/.env"}));
  EXPECT_EQ(table.other_paths("/work/again/.env"), Paths({"/srv/data/.env"}));
  EXPECT_EQ(table.other_paths("/etc/shadow"), Paths({"/host/etc/shadow"}));
}

TEST(MountTable, finds_a_part_that_is_shown_again) {
  EXPECT_EQ(MountTable::parse(kMounts).other_paths("/srv/data/keys"),
            Paths({"/work/again/keys", "/work/a part"}));
}

TEST(MountTable, knows_file_systems_apart) {
  EXPECT_EQ(MountTable::parse(kMounts).other_paths("/mnt/.env"), Paths());
  EXPECT_EQ(MountTable::parse("").other_paths("/mnt/.env"), Paths());
}

}  // namespace
}  // namespace belljar
