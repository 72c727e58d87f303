#include "policy/widening.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "policy/keys.h"
#include "policy/profiles.h"

namespace belljar {
namespace {

Policy make(const Settings& settings, std::string cwd = "/project") {
  return make_policy(settings, {.cwd = std::move(cwd), .home = "/home/me"}).value();
}

bool widens(const Settings& before, const Settings& after) {
  return widening(make(before), make(after)).has_value();
}

TEST(Widening, nothing_widens_itself) {
  for (const Profile& profile : profiles()) {
    Settings settings{.profile = std::string(profile.name)};
    EXPECT_FALSE(widens(settings, settings)) << profile.name;
  }
}

TEST(Widening, profiles_are_ordered_by_what_they_allow) {
  auto is_within = [](const char* narrow, const char* wide) {
    return !widens({.profile = wide}, {.profile = narrow});
  };
  EXPECT_TRUE(is_within("restricted", "developer"));
  EXPECT_TRUE(is_within("public-bot", "developer"));
  EXPECT_TRUE(is_within("public-bot", "restricted"));
  EXPECT_TRUE(is_within("developer", "open"));
  EXPECT_FALSE(is_within("developer", "restricted"));
  EXPECT_FALSE(is_within("developer", "public-bot"));
  EXPECT_FALSE(is_within("restricted", "public-bot"));
  EXPECT_FALSE(is_within("open", "developer"));
  EXPECT_FALSE(is_within("trusted-maintenance", "developer"));
}

TEST(Widening, which_key_asked_does_not_matter) {
  Policy before = make({.profile = "developer", .hide = {"/project/a"}, .protect = {"/project/b"}});
  before.files.credentials.push_back({.source = "/k", .destination = "/home/me/k", .from = "x"});
  Policy after = before;
  for (Grant& grant : after.files.grants) grant.from = "another";
  after.files.credentials[0].from = "another";
  EXPECT_EQ(widening(before, after), std::nullopt);
  // The control: another access, or another path, is not the same.
  for (Grant& grant : after.files.grants)
    if (grant.access == Access::protect) grant.path += "c";
  EXPECT_NE(widening(before, after), std::nullopt);
}

// The property on which refusals rest, over everything that denies.
TEST(Widening, a_deny_over_any_profile_only_narrows) {
  for (const Profile& profile : profiles())
    for (const char* key : {"deny_all", "deny_read", "deny_write", "deny_net", "deny_env"}) {
      Settings before{.profile = std::string(profile.name)};
      Settings after = before;
      ASSERT_TRUE(set(after, *find_key(key), "true", {}));
      EXPECT_EQ(widening(make(before), make(after)), std::nullopt) << profile.name << " " << key;
    }
}

TEST(Widening, hosts_narrow_the_full_network_and_widen_the_others) {
  EXPECT_FALSE(widens({.profile = "developer"}, {.profile = "developer", .allow_net = {"a.test"}}));
  EXPECT_TRUE(
      widens({.profile = "restricted"}, {.profile = "restricted", .allow_net = {"a.test"}}));
  const Settings one{.profile = "developer", .allow_net = {"a.test"}};
  EXPECT_TRUE(widens(one, {.profile = "developer", .allow_net = {"a.test", "b.test"}}));
  EXPECT_FALSE(widens({.profile = "developer", .allow_net = {"a.test", "b.test"}}, one));
}

TEST(Widening, a_host_within_those_allowed_widens_nothing) {
  const Settings before{.profile = "developer",
                        .allow_net = {"*.a.test", "10.0.0.0/8"},
                        .deny_net_hosts = {"x.a.test"}};
  auto adding = [&](const char* host) {
    Settings after = before;
    after.allow_net.emplace_back(host);
    return widens(before, after);
  };
  EXPECT_FALSE(adding("b.a.test"));
  EXPECT_FALSE(adding("10.1.2.3:22"));
  EXPECT_TRUE(adding("a.test"));
  EXPECT_TRUE(adding("b.a.test:22"));
  EXPECT_TRUE(adding("11.0.0.1"));
  EXPECT_TRUE(adding("localhost:80"));
  Settings after = before;
  after.deny_net_hosts.clear();
  EXPECT_TRUE(widens(before, after));
  EXPECT_FALSE(widens(after, before));
  after = before;
  after.publish = {"8080:80"};
  EXPECT_TRUE(widens(before, after));
  EXPECT_FALSE(widens(after, before));
}

TEST(Widening, the_most_specific_path_decides) {
  const Settings hidden{.profile = "developer", .hide = {"/project/secret"}};
  auto with = [&](Settings settings) {
    settings.profile = hidden.profile;
    settings.hide = hidden.hide;
    return widens(hidden, settings);
  };
  EXPECT_FALSE(with({.allow_write = {"/project/dist"}}));
  EXPECT_FALSE(with({.allow_write = {"/project"}}));
  EXPECT_TRUE(with({.allow_read = {"/project/secret"}}));
  EXPECT_TRUE(with({.allow_read = {"/project/secret/key"}}));
  EXPECT_TRUE(with({.allow_read = {"/project/dist/../secret/key"}}));
  EXPECT_TRUE(with({.protect = {"/project/secret/key"}}));
  EXPECT_TRUE(with({.protect = {"/project/*"}}));
  EXPECT_TRUE(with({.allow_read = {"/projectile"}}));
}

TEST(Widening, a_hidden_pattern_stays_hidden) {
  const Settings hidden{.profile = "developer", .hide = {"/project/**/.env"}};
  Settings after = hidden;
  after.allow_read = {"/project/a/b/.env"};
  EXPECT_TRUE(widens(hidden, after));
  after.allow_read = {"/project/a/b/.env/deeper"};
  EXPECT_TRUE(widens(hidden, after));
  after.allow_read = {"/project/a/b"};
  EXPECT_FALSE(widens(hidden, after));
  EXPECT_TRUE(widens(hidden, {.profile = "developer"}));
}

TEST(Widening, what_is_protected_may_be_read_but_not_written) {
  const Settings before{.profile = "developer", .protect = {"/project/.git"}};
  Settings after = before;
  after.allow_read = {"/project/.git/config"};
  EXPECT_FALSE(widens(before, after));
  after.allow_write = {"/project/.git/hooks"};
  EXPECT_TRUE(widens(before, after));
}

TEST(Widening, what_is_hidden_is_not_shown_a_second_time) {
  const Settings bot{.profile = "public-bot", .hide = {"/project/.env"}};
  Settings after = bot;
  after.home = "/project";
  EXPECT_TRUE(widens(bot, after));
  after = bot;
  after.tmp = "/project";
  EXPECT_TRUE(widens(bot, after));
  after = bot;
  after.extra_fs_read = {"/project"};
  EXPECT_TRUE(widens(bot, after));
  after.extra_fs_read = {"/project/elsewhere"};
  EXPECT_FALSE(widens(bot, after));
  after = {.profile = "public-bot"};
  after.home = "/project";
  EXPECT_FALSE(widens({.profile = "public-bot"}, after));
}

TEST(Widening, a_reach_does_not_move_with_a_symlink) {
  std::string folder = testing::TempDir() + "reach_XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  namespace fs = std::filesystem;
  fs::create_directories(folder + "/work");
  fs::create_directories(folder + "/keys");
  fs::create_symlink("work", folder + "/now");
  Files files;
  files.workdir = folder + "/now";
  const Reach reach(files);
  fs::remove(folder + "/now");
  fs::create_symlink("keys", folder + "/now");
  EXPECT_TRUE(reach.allows(folder + "/work/x", Access::write));
  EXPECT_FALSE(reach.allows(folder + "/keys", Access::read));
  fs::remove_all(folder);
}

TEST(Widening, a_denied_workdir_cannot_be_allowed_again) {
  const Settings denied{.profile = "developer", .deny_write = true};
  EXPECT_TRUE(
      widens(denied, {.profile = "developer", .deny_write = true, .allow_write = {"/project/x"}}));
  EXPECT_FALSE(
      widens(denied, {.profile = "developer", .deny_write = true, .allow_read = {"/project/x"}}));
}

TEST(Widening, variables_are_matched_by_name) {
  const Settings before{.profile = "developer", .allow_env = {"AB*"}};
  EXPECT_FALSE(widens(before, {.profile = "developer", .allow_env = {"ABC"}}));
  EXPECT_TRUE(widens(before, {.profile = "developer", .allow_env = {"A*"}}));
  EXPECT_TRUE(widens(before, {.profile = "developer", .allow_env = {"AC"}}));
}

TEST(Widening, nothing_is_wider_than_no_sandbox) {
  EXPECT_FALSE(widens({.mode = "off"}, {.mode = "auto", .profile = "open"}));
  EXPECT_TRUE(widens({}, {.mode = "off"}));
  EXPECT_TRUE(widens({.mode = "on"}, {.mode = "auto"}));
  EXPECT_FALSE(widens({}, {.mode = "on"}));
}

}  // namespace
}  // namespace belljar
