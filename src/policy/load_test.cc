// Precedence, and the claim about projects: an untrusted one narrows, never widens.
#include "policy/load.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/sha256.h"
#include "policy/trust.h"
#include "policy/widening.h"

namespace belljar {
namespace {

namespace fs = std::filesystem;

// A home with a project in it, on the real file system.
class Load : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "belljar-load-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = fs::canonical(name);
    fs::create_directories(root_ / "home/project/sub");
    fs::create_directories(root_ / "home/.config/belljar");
    places_ = {.cwd = root_ / "home/project",
               .home = root_ / "home",
               .user_file = root_ / "home/.config/belljar/config.toml",
               .trust_file = root_ / "home/.local/state/belljar/trusted",
               .mode_variable = {}};
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const fs::path& path, std::string_view text) { std::ofstream(path) << text; }
  void project(std::string_view text) { write(root_ / "home/project/belljar.toml", text); }
  void user(std::string_view text) { write(places_.user_file, text); }

  Result<Loaded> load(const Settings& flags = {}, const char* task = nullptr) {
    Result<ConfigFiles> files = read_config_files(places_);
    if (!files) return std::unexpected(files.error());
    if (task == nullptr) return belljar::load(*files, places_, flags);
    return belljar::load(*files, places_, flags, &files->project->config.tasks.at(task));
  }

  Loaded loaded(const Settings& flags = {}, const char* task = nullptr) {
    Result<Loaded> result = load(flags, task);
    EXPECT_TRUE(result.has_value()) << result.error().message();
    return result.value_or(Loaded{});
  }

  std::string refusal(const Settings& flags = {}, const char* task = nullptr) {
    Result<Loaded> result = load(flags, task);
    return result ? "" : result.error().message();
  }

  void trust_project() {
    Result<ConfigFiles> files = read_config_files(places_);
    ASSERT_TRUE(files) << files.error().message();
    ASSERT_TRUE(
        trust(places_.trust_file, {.hash = files->project->hash, .path = files->project->path}));
  }

  fs::path root_;
  ConfigPlaces places_;
};

bool has(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

// ---- precedence ----

TEST_F(Load, without_files_the_default_profile_applies) {
  EXPECT_EQ(loaded().policy.profile, "developer");
  EXPECT_EQ(loaded({.deny_net = true}).policy.profile, "open");
}

TEST_F(Load, the_highest_source_has_the_say) {
  user("[sandbox]\nnetwork = \"none\"\nmax_procs = 10\nmax_memory_mb = 100\ntimeout = 9");
  project(
      "[sandbox]\nmax_procs = 9\nmax_memory_mb = 90\n[tasks.t]\nrun = \"x\"\nmax_memory_mb = 80");
  EXPECT_EQ(loaded().settings.network, "none");
  EXPECT_EQ(loaded().settings.max_procs->value, 9U);
  EXPECT_EQ(loaded().settings.max_memory_mb->value, 90U);
  EXPECT_EQ(loaded({}, "t").settings.max_memory_mb->value, 80U);
  EXPECT_EQ(loaded({.max_memory_mb = Limit{70}}, "t").settings.max_memory_mb->value, 70U);
  EXPECT_EQ(loaded().policy.limits.timeout, std::chrono::seconds(9));
}

TEST_F(Load, denies_and_lists_add_up) {
  user("[sandbox]\ndeny_net = true\nhide = [\"/a\"]");
  project("[sandbox]\ndeny_env = true\nhide = [\"b\"]");
  Settings settings = loaded({.deny_write = true}).settings;
  EXPECT_TRUE(settings.deny_net && settings.deny_env && settings.deny_write);
  EXPECT_EQ(settings.hide, (std::vector<std::string>{"/a", places_.cwd + "/b"}));
}

TEST_F(Load, the_variable_is_the_weakest_source_of_a_mode) {
  places_.mode_variable = "off";
  EXPECT_EQ(loaded().policy.mode, Mode::off);
  EXPECT_EQ(loaded({.deny_net = true}).policy.mode, Mode::automatic);
  EXPECT_EQ(loaded({.mode = "auto"}).policy.mode, Mode::automatic);
  user("[sandbox]\nmode = \"on\"");
  EXPECT_EQ(loaded().policy.mode, Mode::on);
}

TEST_F(Load, a_deny_does_not_weaken_the_variable) {
  places_.mode_variable = "on";
  EXPECT_EQ(loaded({.deny_net = true}).policy.mode, Mode::on);
}

TEST_F(Load, a_wrong_variable_is_an_error) {
  places_.mode_variable = "yes";
  EXPECT_TRUE(has(refusal(), "BELLJAR_SANDBOX: \"yes\" is not one of auto, on, full, off"));
}

TEST_F(Load, a_deny_in_a_file_stays_within_the_default_profile) {
  user("[sandbox]\ndeny_net = true");
  EXPECT_EQ(loaded().policy.profile, "developer");
  EXPECT_EQ(loaded().policy.network, Network::none);
}

TEST_F(Load, an_allow_in_a_file_denies_the_rest) {
  project("[sandbox]\nallow_write = [\"dist\"]");
  Policy policy = loaded().policy;
  EXPECT_EQ(policy.files.workdir_access, Access::read);
  EXPECT_EQ(policy.files.grants.at(0),
            (Grant{places_.cwd + "/dist", Access::write, "allow_write in belljar.toml:2"}));
}

// ---- own profiles ----

TEST_F(Load, an_own_profile_lies_under_the_rest_and_keeps_its_name) {
  user(
      "[sandbox]\nprofile = \"mine\"\nmax_procs = 5\n"
      "[profiles.mine]\nextends = \"base\"\nmax_procs = 6\nmax_open_fds = 17\n"
      "[profiles.base]\nextends = \"restricted\"\nmax_open_fds = 18\nmax_file_sz_mb = 9\n");
  Loaded result = loaded();
  EXPECT_EQ(result.policy.profile, "mine");
  EXPECT_EQ(result.settings.profile, "restricted");
  EXPECT_EQ(result.policy.network, Network::loopback);
  EXPECT_EQ(result.policy.limits.procs, 5U);
  EXPECT_EQ(result.policy.limits.open_fds, 17U);
  EXPECT_EQ(result.policy.limits.file_sz_mb, 9U);
}

TEST_F(Load, a_project_can_use_the_persons_profiles_but_not_redefine_them) {
  user("[profiles.mine]\nextends = \"public-bot\"");
  project("[sandbox]\nprofile = \"mine\"");
  EXPECT_EQ(loaded().policy.profile, "mine");
  project("[profiles.mine]\nextends = \"open\"");
  EXPECT_TRUE(has(refusal(), "already your own"));
}

// ---- rules about hosts ----

TEST_F(Load, hosts_that_are_named_narrow_the_full_network) {
  Policy policy = loaded({.network = "full", .allow_net = {"a.test"}}).policy;
  EXPECT_EQ(policy.network, Network::hosts);
  EXPECT_EQ(policy.hosts, std::vector<std::string>{"a.test"});
}

TEST_F(Load, a_host_is_denied_only_among_those_allowed) {
  EXPECT_TRUE(has(refusal({.profile = "developer", .deny_net_hosts = {"a.test"}}), "allow_net"));
  EXPECT_TRUE(has(refusal({.deny_net_hosts = {"a.test"}}), "allow_net"));
  EXPECT_EQ(refusal({.profile = "restricted", .deny_net_hosts = {"a.test"}}), "");
  Policy policy =
      loaded({.allow_net = {"*.test"}, .deny_net_hosts = {"a.test", "a.test:22"}}).policy;
  EXPECT_EQ(policy.deny_hosts, (std::vector<std::string>{"a.test", "a.test:22"}));
}

TEST_F(Load, ports_are_published_from_a_network_of_its_own) {
  EXPECT_EQ(loaded({.profile = "restricted", .publish = {"8080:80"}}).policy.publish,
            (std::vector<Published>{{.host_port = 8080, .port = 80}}));
  EXPECT_EQ(loaded({.allow_net = {"a.test"}, .publish = {"8080:80"}}).policy.publish.size(), 1U);
  EXPECT_TRUE(has(refusal({.profile = "developer", .publish = {"8080:80"}}), "the host's own"));
  EXPECT_TRUE(has(refusal({.profile = "public-bot", .publish = {"8080:80"}}), "no network"));
  EXPECT_TRUE(has(refusal({.network = "loopback", .publish = {"80:80", "80:81"}}), "taken twice"));
}

TEST_F(Load, groups_of_the_person_are_for_flags_and_projects) {
  user("[net_groups]\nnpm = [\"registry.example\", \"cdn.example\"]");
  const std::vector<std::string> both = {"registry.example", "cdn.example"};
  EXPECT_EQ(loaded({.allow_net = {"@npm"}}).policy.hosts, both);
  EXPECT_EQ(loaded({.allow_net = {"@npm"}}).settings.allow_net, both);
  EXPECT_TRUE(has(refusal({.allow_net = {"@nmp"}}), "did you mean @npm?"));
  project(
      "[net_groups]\nmore = [\"@npm\", \"b.test\"]\n[sandbox]\nallow_net = [\"@more\"]\n"
      "deny_net_hosts = [\"@npm\"]");
  EXPECT_EQ(loaded().policy.hosts.size(), 3U);
  EXPECT_EQ(loaded().policy.deny_hosts, both);
}

TEST_F(Load, a_project_cannot_redefine_the_persons_groups) {
  user("[net_groups]\nnpm = [\"registry.example\"]");
  project("[net_groups]\nnpm = [\"evil.example\"]");
  EXPECT_TRUE(has(refusal(), "already your own"));
}

TEST_F(Load, a_project_does_not_choose_what_the_person_names) {
  project("[net_groups]\nnpm = [\"evil.example\"]");
  EXPECT_EQ(refusal(), "");
  EXPECT_TRUE(has(refusal({.allow_net = {"@npm"}}), "belljar.toml:2:1: group @npm would widen"));
  EXPECT_TRUE(has(refusal({.allow_net = {"a.test"}, .deny_net_hosts = {"@npm"}}), "group @npm"));
  trust_project();
  EXPECT_EQ(loaded({.allow_net = {"@npm"}}).policy.hosts, std::vector<std::string>{"evil.example"});
}

TEST_F(Load, a_project_adds_no_host_to_those_of_the_person) {
  user("[sandbox]\nallow_net = [\"*.a.test\"]\ndeny_net_hosts = [\"x.a.test\"]");
  project("[sandbox]\nallow_net = [\"b.test\"]");
  EXPECT_TRUE(has(refusal(), "allow_net would widen the policy (network to b.test)"));
  project("[net_groups]\ng = [\"b.test\"]\n[sandbox]\nallow_net = [\"@g\"]");
  EXPECT_TRUE(has(refusal(), "network to b.test"));
  project("[sandbox]\nallow_net = [\"c.a.test\"]\ndeny_net_hosts = [\"y.a.test\"]");
  EXPECT_EQ(refusal(), "");
  EXPECT_EQ(loaded().policy.deny_hosts, (std::vector<std::string>{"x.a.test", "y.a.test"}));
}

TEST_F(Load, a_project_may_name_hosts_and_publish_only_the_first_untrusted) {
  project("[sandbox]\nallow_net = [\"a.test\"]\ndeny_net_hosts = [\"a.test:80\"]");
  EXPECT_EQ(loaded().policy.network, Network::hosts);
  project("[sandbox]\nallow_net = [\"a.test\"]\npublish = [\"8080:80\"]");
  EXPECT_TRUE(
      has(refusal(), "publish would widen the policy (publishes a port on the host's 8080)"));
}

// ---- finding files ----

TEST_F(Load, the_project_is_found_from_below) {
  project("[sandbox]\ndeny_net = true");
  places_.cwd = root_ / "home/project/sub";
  EXPECT_EQ(loaded().policy.network, Network::none);
}

TEST_F(Load, a_file_that_is_not_regular_is_an_error_and_not_a_hang) {
  ASSERT_EQ(::mkfifo((places_.cwd + "/belljar.toml").c_str(), 0600), 0);
  EXPECT_TRUE(has(refusal(), "is not a regular file"));
  fs::remove(places_.cwd + "/belljar.toml");
  fs::create_symlink("/dev/zero", places_.cwd + "/belljar.toml");
  EXPECT_TRUE(has(refusal(), "is not a regular file"));
  fs::remove(places_.cwd + "/belljar.toml");
  fs::create_symlink("gone", places_.cwd + "/belljar.toml");
  EXPECT_TRUE(has(refusal(), "No such file"));
  fs::remove(places_.cwd + "/belljar.toml");
  fs::create_directory(places_.cwd + "/belljar.toml");
  EXPECT_FALSE(refusal().empty());
}

// ---- trust ----

// One line for each key of the table that could widen: adding a key without a line
// here fails the test below.
struct Asked {
  const char* key;
  const char* wide;    // refused
  const char* narrow;  // accepted; null: there is none
};
constexpr Asked kAsked[] = {
    {"mode", "\"off\"", "\"on\""},
    {"profile", "\"open\"", "\"restricted\""},
    {"network", nullptr, "\"none\""},
    {"allow_read", "[\"/etc/ssh\"]", "[\"sub\"]"},
    {"allow_write", "[\"..\"]", "[\"sub/new\"]"},
    {"allow_net", nullptr, "[\"a.test\"]"},
    {"publish", "[\"8080:80\"]", "[]"},
    {"allow_env", "[\"SECRET\"]", "[\"LANG\"]"},
    {"extra_fs_read", "[\"~/.ssh\"]", "[\"sub\"]"},
    {"extra_fs_write", "[\"/\"]", "[\".\"]"},
    {"extra_env", "[\"*\"]", "[\"LC_TIME\"]"},
    {"env", "{ LD_PRELOAD = \"x\" }", "{}"},
    {"workdir", "\"..\"", "\"sub\""},
    {"home", "\"~\"", "\"sub\""},
    {"cache", "\"/var\"", "\"sub\""},
    {"tmp", "\"/tmp\"", "\"private\""},
    {"credential", "[\"~/.ssh/id:~/id\"]", "[]"},
    {"accept_degraded", "[\"files\"]", "[]"},
    {"max_memory_mb", "2049", "2048"},
    {"max_cpu_secs", "\"unlimited\"", "600"},
    {"max_procs", "65", "1"},
    {"max_open_fds", "1025", "1024"},
    {"max_file_sz_mb", "257", "256"},
};

TEST_F(Load, every_widening_key_has_a_case) {
  for (const Key& key : keys())
    if (key.widens) {
      EXPECT_NE(std::ranges::find(kAsked, key.name, &Asked::key), std::end(kAsked)) << key.name;
    }
}

TEST_F(Load, an_untrusted_project_is_refused_by_name_what_widens) {
  for (const Asked& asked : kAsked) {
    if (asked.wide == nullptr) continue;
    const std::string line = std::string(asked.key) + " = " + asked.wide;
    project("[sandbox]\n" + line);
    std::string message = refusal();
    EXPECT_TRUE(has(message, std::string("belljar.toml:2:1: ") + asked.key + " would widen"))
        << line << ": " << message;
    EXPECT_TRUE(has(message, "belljar trust")) << message;

    project("[tasks.t]\nrun = \"x\"\n" + line);
    EXPECT_EQ(refusal(), "") << line;  // nobody has started the task
    EXPECT_TRUE(has(refusal({}, "t"), std::string("belljar.toml:3:1: ") + asked.key)) << line;

    project("[profiles.p]\n" + line);
    if (std::string_view(asked.key) != "profile") {
      EXPECT_TRUE(has(refusal({.profile = "p"}), "profile \"p\" would widen")) << line;
    }
  }
}

TEST_F(Load, an_untrusted_project_may_narrow) {
  Policy before = loaded().policy;
  for (const Asked& asked : kAsked) {
    if (asked.narrow == nullptr) continue;
    project("[sandbox]\n" + std::string(asked.key) + " = " + asked.narrow);
    EXPECT_EQ(refusal(), "") << asked.key;
    EXPECT_EQ(widening(before, loaded().policy), std::nullopt) << asked.key;
  }
}

TEST_F(Load, what_widens_is_judged_by_what_the_person_set) {
  user("[sandbox]\nnetwork = \"none\"\nmode = \"on\"\nmax_procs = 5");
  project("[sandbox]\nnetwork = \"loopback\"");
  EXPECT_TRUE(has(refusal(), "network loopback instead of none"));
  project("[sandbox]\nmode = \"auto\"");
  EXPECT_TRUE(has(refusal(), "mode auto instead of on"));
  project("[sandbox]\nmax_procs = 6");
  EXPECT_TRUE(has(refusal(), "more processes"));
  project("[sandbox]\nallow_net = [\"a.test\"]");
  EXPECT_TRUE(has(refusal(), "network hosts instead of none"));
}

TEST_F(Load, a_flag_that_denies_cannot_be_undone_by_a_project) {
  project("[sandbox]\nallow_read = [\".\"]");
  EXPECT_TRUE(has(refusal({.profile = "developer", .deny_all = true}), "allow_read would widen"));
  project("[sandbox]\nallow_net = [\"a.test\"]");
  EXPECT_TRUE(has(refusal({.deny_net = true}), "allow_net would widen"));
  EXPECT_EQ(refusal({.network = "full"}), "");
}

TEST_F(Load, a_symlink_in_the_project_leads_where_it_leads) {
  fs::create_symlink(root_ / "home/.config", root_ / "home/project/link");
  project("[sandbox]\nallow_write = [\"link\"]");
  EXPECT_TRUE(has(refusal(), "allow_write would widen"));
  project("[sandbox]\nallow_write = [\"link/new/folder\"]");
  EXPECT_TRUE(has(refusal(), "allow_write would widen"));
  project("[sandbox]\nallow_write = [\"sub/../../project/sub\"]");
  EXPECT_EQ(refusal(), "");
}

TEST_F(Load, a_task_cannot_leave_the_project) {
  project("[tasks.t]\nrun = \"x\"\ndir = \"..\"");
  EXPECT_TRUE(has(refusal({}, "t"), "would widen"));
  project("[tasks.t]\nrun = \"x\"\ndir = \"sub\"");
  EXPECT_EQ(refusal({}, "t"), "");
}

TEST_F(Load, a_project_cannot_make_the_home_its_workdir) {
  places_.cwd = places_.home;
  write(root_ / "home/belljar.toml", "[sandbox]\nworkdir = \".\"\n[tasks.t]\nrun = \"x\"");
  EXPECT_TRUE(has(refusal(), "whole home"));
  write(root_ / "home/belljar.toml", "[tasks.t]\nrun = \"x\"");
  EXPECT_EQ(refusal(), "");
  EXPECT_TRUE(has(refusal({}, "t"), "whole home"));
}

TEST_F(Load, all_that_widens_is_listed) {
  project(
      "[sandbox]\nmode = \"off\"\n[profiles.p]\nextends = \"open\"\n"
      "[tasks.t]\nrun = \"x\"\nnetwork = \"full\"\nmax_procs = 100\n");
  ConfigFiles files = read_config_files(places_).value();
  auto all = all_widenings(files, places_).value();
  std::string what;
  for (const Widening& widening : all)
    what += std::to_string(widening.position.line) + " " + widening.what + "; ";
  EXPECT_EQ(what, "2 mode; 3 profile \"p\"; 8 max_procs; ");
}

TEST_F(Load, a_trusted_project_may_widen_until_it_changes) {
  project("[sandbox]\nallow_write = [\"/srv\"]");
  EXPECT_TRUE(has(refusal(), "belljar trust"));
  trust_project();
  EXPECT_EQ(loaded().policy.files.grants.at(0).path, "/srv");
  project("[sandbox]\nallow_write = [\"/srv\"] ");
  EXPECT_TRUE(has(refusal(), "belljar trust"));
  project("[sandbox]\nallow_write = [\"/srv\"]");
  EXPECT_EQ(refusal(), "");
  ASSERT_EQ(revoke(places_.trust_file, places_.cwd + "/belljar.toml"), true);
  EXPECT_TRUE(has(refusal(), "belljar trust"));
}

TEST_F(Load, a_symlink_to_a_trusted_file_is_not_trusted) {
  project("[sandbox]\nallow_write = [\"../x\"]");
  trust_project();
  fs::create_directory(root_ / "home/other");
  fs::create_symlink(root_ / "home/project/belljar.toml", root_ / "home/other/belljar.toml");
  places_.cwd = root_ / "home/other";
  EXPECT_TRUE(has(refusal(), "belljar trust"));
}

}  // namespace
}  // namespace belljar
