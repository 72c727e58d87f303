// What must be true of a Mac's profile whatever the policy says.
#include "plan/macos.h"

#include <algorithm>
#include <filesystem>
#include <random>

#include "layers/seatbelt_startup.h"
#include "layers/seatbelt_text.h"
#include "support/mac.h"

namespace belljar {
namespace {

using namespace testing_mac;

constexpr int kRounds = 150;

// Any byte but NUL and the slash, with a liking for those that mean something.
std::string odd_name(std::mt19937& random) {
  constexpr std::string_view kSpecial = "\"\\()#;\n\r\t *?[]'`$^.\x7f\xff\xc3";
  std::string name;
  const auto size = 1 + random() % 12;
  while (name.size() < size) {
    const char byte = random() % 3 == 0 ? static_cast<char>(1 + random() % 255)
                                        : kSpecial[random() % kSpecial.size()];
    if (byte != '/') name.push_back(byte);
  }
  return name == "." || name == ".." ? "x" : name;
}

std::string odd_path(std::mt19937& random) {
  std::string path = random() % 4 == 0 ? "/tmp" : kHome;
  for (auto depth = 1 + random() % 3; depth > 0; --depth) path += "/" + odd_name(random);
  return path;
}

Result<Plan> plan_for(const Policy& policy) { return mac_plan(policy, mac_caller(), mac()); }

Policy restricted(Settings settings = {}) {
  settings.profile = "restricted";
  return policy_of(settings, std::string(kHome) + "/work");
}

std::string real(const std::string& path) { return seatbelt::trace(mac(), path)->path; }

TEST(SeatbeltText, a_string_reads_back_as_it_was) {
  std::mt19937 random(1);  // NOLINT(cert-msc51-cpp): the same paths each time
  for (int i = 0; i < 5000; ++i) {
    const std::string text = odd_path(random);
    const auto read = sbpl::read("(a " + seatbelt::quoted(text) + " b)");
    ASSERT_TRUE(read) << read.error();
    ASSERT_EQ(read->size(), 1U);
    ASSERT_EQ(read->at(0).items.size(), 3U) << text;
    ASSERT_EQ(read->at(0).items[1].text, text);
  }
}

TEST(SeatbeltText, a_path_cannot_add_a_rule) {
  const Policy plain = restricted({.extra_fs_read = {"/Users/me/x"}});
  const std::size_t rules = parsed(*plan_for(plain)).size();
  for (const char* name :
       {"\") (allow default) (\"", "x\"))\n(allow default)\n", "\\\"))(allow default)", "x\\",
        ";\n(allow default)", "#\"", "\\\\\"", "\r(allow default)"}) {
    const std::string path = std::string(kHome) + "/" + name;
    const Result<Plan> plan = plan_for(restricted({.extra_fs_read = {path}}));
    ASSERT_TRUE(plan) << plan.error().message();
    const sbpl::Profile profile = parsed(*plan);
    EXPECT_EQ(profile.size(), rules) << name;
    EXPECT_TRUE(profile.allows("file-read-data", path)) << name;
    EXPECT_FALSE(profile.allows("file-read-data", "/Users/me/.ssh/id_rsa")) << name;
    EXPECT_FALSE(profile.allows("nvram-set", "/")) << name;
  }
}

TEST(SeatbeltText, a_path_with_a_nul_is_refused) {
  const Result<Plan> plan =
      plan_for(restricted({.extra_fs_read = {std::string("/Users/me/a\0b", 13)}}));
  ASSERT_FALSE(plan);
  EXPECT_NE(plan.error().what.find("NUL"), std::string::npos);
}

struct Rights {
  bool reads = false, writes = false;
};

// First principles again: the deepest grant decides, and exceptions in it take away.
Rights rights_at(const std::string& path, const std::vector<Grant>& grants) {
  Rights rights;
  std::size_t depth = 0;
  for (const Grant& grant : grants) {
    const std::string tree = real(grant.path);
    const bool exception = grant.access == Access::hide || grant.access == Access::protect;
    if (exception || !is_below(path, tree) || tree.size() < depth) continue;
    rights = {true, grant.access == Access::write};
    depth = tree.size();
  }
  for (const Grant& grant : grants) {
    const std::string tree = real(grant.path);
    if (!is_below(path, tree) || tree.size() < depth) continue;
    if (grant.access == Access::hide) rights = {};
    if (grant.access == Access::protect) rights.writes = false;
  }
  return rights;
}

// Grants, hides and protects at random, on top of one another.
TEST(Seatbelt, every_grant_is_there_and_nothing_else) {
  std::mt19937 random(2);  // NOLINT(cert-msc51-cpp): the same paths each time
  for (int i = 0; i < kRounds && !HasFailure(); ++i) {
    std::vector<std::string> trees;
    for (int n = 0; n < 4; ++n) trees.push_back(odd_path(random));
    trees.push_back(trees[0] + "/" + odd_name(random));
    Policy policy = restricted();
    for (const std::string& tree : trees)
      policy.files.grants.push_back({tree, static_cast<Access>(random() % 4), "test"});
    const Result<Plan> plan = plan_for(policy);
    ASSERT_TRUE(plan) << plan.error().message();
    const sbpl::Profile profile = parsed(*plan);

    std::vector<std::string> probes = {std::string(kHome) + "/.ssh/key", odd_path(random)};
    for (const std::string& tree : trees)
      for (const std::string& path : {tree, tree + "/in/side", tree + "x"}) probes.push_back(path);
    for (const std::string& given : probes) {
      const std::string path = real(given);
      const Rights rights = rights_at(path, policy.files.grants);
      EXPECT_EQ(profile.allows("file-read-data", path), rights.reads) << path;
      EXPECT_EQ(profile.allows("process-exec", path), rights.reads) << path;
      EXPECT_EQ(profile.allows("file-write-data", path), rights.writes) << path;
      EXPECT_EQ(profile.allows("network-bind", path), rights.writes) << path;
      EXPECT_TRUE(rights.reads || !profile.allows("network-outbound", path)) << path;
    }
  }
}

TEST(Seatbelt, what_is_hidden_has_no_attributes_either) {
  const std::string work = std::string(kHome) + "/work";
  const sbpl::Profile profile = parsed(*plan_for(restricted({.hide = {work + "/.env"}})));
  EXPECT_TRUE(profile.allows("file-read-metadata", work + "/a"));
  for (const char* operation : {"file-read-metadata", "file-read-xattr", "file-test-existence",
                                "file-link", "file-clone", "file-write-unlink", "file-ioctl"})
    EXPECT_FALSE(profile.allows(operation, work + "/.env")) << operation;
}

TEST(Seatbelt, what_is_hidden_cannot_be_moved_away_with_a_folder_above) {
  const std::string work = std::string(kHome) + "/work";
  const sbpl::Profile profile =
      parsed(*plan_for(restricted({.hide = {work + "/a/b/.env"}, .protect = {work + "/c/.git"}})));
  for (const char* folder : {"", "/a", "/a/b", "/c"})
    EXPECT_FALSE(profile.allows("file-write-unlink", work + folder)) << folder;
  EXPECT_TRUE(profile.allows("file-write-unlink", work + "/a/c"));
  EXPECT_TRUE(profile.allows("file-write-create", work + "/a/c"));
}

TEST(Seatbelt, what_is_protected_gets_no_second_name) {
  const std::string work = std::string(kHome) + "/work";
  for (const char* profile : {"open", "developer"}) {
    Settings settings{.protect = {work + "/.git"}};
    settings.profile = profile;
    const sbpl::Profile judge = parsed(*plan_for(policy_of(settings, work)));
    EXPECT_FALSE(judge.allows("file-link", work + "/.git/config")) << profile;
    EXPECT_FALSE(judge.allows("file-write-mode", work + "/.git/config")) << profile;
    EXPECT_TRUE(judge.allows("file-write-data", work + "/a")) << profile;
  }
}

// The data volume shows every file of the machine again.
TEST(Seatbelt, nothing_is_reached_through_the_data_volume) {
  const std::string again = std::string("/System/Volumes/Data") + kHome;
  for (const Profile& one : profiles()) {
    Settings settings{.hide = {std::string(kHome) + "/work/.env"}};
    settings.profile = std::string(one.name);
    const sbpl::Profile profile =
        parsed(*plan_for(policy_of(settings, std::string(kHome) + "/work")));
    EXPECT_FALSE(profile.allows("file-read-data", again + "/work/.env")) << one.name;
    EXPECT_FALSE(profile.allows("file-write-data", again + "/work/a")) << one.name;
    EXPECT_FALSE(profile.allows("file-read-data", again + "/.ssh/id_rsa")) << one.name;
    EXPECT_TRUE(profile.allows("file-read-data", "/System/Library/x")) << one.name;
  }
}

// Every tree that is opened is one that somebody named: the policy, or the lists of the system.
TEST(Seatbelt, every_tree_that_is_allowed_was_asked_for) {
  for (const char* name : {"developer", "restricted", "public-bot"}) {
    Settings settings{.extra_fs_read = {"/Volumes/in"}, .extra_fs_write = {"/Volumes/out"}};
    settings.profile = name;
    const Policy policy = policy_of(settings, std::string(kHome) + "/work");
    const Result<Plan> plan = plan_for(policy);
    std::vector<std::string> asked = {
        "/Volumes/in",           "/Volumes/out", std::string(kHome) + "/work",
        plan->seatbelt->scratch, "/dev/fd",      "/var/run/resolv.conf"};
    for (const char* folder : seatbelt::system_folders(policy.files.reads))
      asked.emplace_back(folder);
    if (policy.files.toolchains) asked.push_back(std::string(kHome) + "/.cargo");
    for (const std::string& tree : parsed(*plan).allowed("subpath"))
      EXPECT_TRUE(std::ranges::any_of(
          asked,
          [&](const std::string& one) { return is_below(tree, one) || is_below(tree, real(one)); }))
          << name << " opens " << tree;
  }
}

TEST(Seatbelt, a_glob_hides_what_it_matches_and_what_will) {
  const std::string work = std::string(kHome) + "/work";
  const sbpl::Profile profile = parsed(*plan_for(restricted(
      {.hide = {work + "/**/*.pem", work + "/k?y", work + "/[ab]c", work + "/q\"*", work + "/é*"},
       .protect = {work + "/**/.git"}})));
  for (const char* path : {"/x.pem", "/a/b/x.pem", "/.pem", "/x.pem/in", "/kay", "/k\xc3\xa9y",
                           "/ac", "/q\"", "/q\"x", "/éa"})
    EXPECT_FALSE(profile.allows("file-read-data", work + path)) << path;
  for (const char* path : {"/x.pen", "/pem", "/ky", "/c", "/a/kay", "/q", "/e"})
    EXPECT_TRUE(profile.allows("file-read-data", work + path)) << path;
  EXPECT_FALSE(profile.allows("file-write-data", work + "/sub/.git/config"));
  EXPECT_TRUE(profile.allows("file-read-data", work + "/sub/.git/config"));
  EXPECT_FALSE(profile.allows("file-read-data", "/elsewhere/.git/config"));
}

TEST(Seatbelt, a_glob_holds_for_the_real_path_too) {
  const sbpl::Profile profile =
      parsed(*plan_for(restricted({.extra_fs_read = {"/tmp/data"}, .hide = {"/tmp/data/*.pem"}})));
  EXPECT_TRUE(profile.allows("file-read-data", "/private/tmp/data/a"));
  EXPECT_FALSE(profile.allows("file-read-data", "/private/tmp/data/a.pem"));
}

TEST(Seatbelt, loopback_is_by_where_a_connection_leads) {
  const sbpl::Profile profile = parsed(*plan_for(restricted({.network = "loopback"})));
  // A connection has an address of its own before it is made, and that must not open it.
  EXPECT_FALSE(profile.allows(
      {.operation = "network-outbound", .remote = "192.0.2.1:443", .local = "localhost:50000"}));
  EXPECT_TRUE(profile.allows({.operation = "network-outbound", .remote = "localhost:8080"}));
  EXPECT_TRUE(profile.allows({.operation = "network-bind", .local = "localhost:8080"}));
  EXPECT_FALSE(profile.allows({.operation = "network-bind", .local = "192.0.2.7:8080"}));
}

TEST(Seatbelt, a_full_network_opens_no_socket_that_is_a_file) {
  const sbpl::Profile profile = parsed(*plan_for(restricted({.network = "full"})));
  EXPECT_TRUE(profile.allows({.operation = "network-outbound", .remote = "192.0.2.1:443"}));
  EXPECT_TRUE(profile.allows("network-outbound", "/private/var/run/mDNSResponder"));
  for (const char* path : {"/private/var/run/docker.sock", "/Users/me/.docker/run/docker.sock",
                           "/private/tmp/com.apple.launchd.x/Listeners"})
    EXPECT_FALSE(profile.allows("network-outbound", path)) << path;
}

TEST(Seatbelt, no_profile_reaches_what_starts_programs_or_keeps_secrets) {
  for (const Profile& one : profiles()) {
    if (one.name == "open") continue;
    Settings settings;
    settings.profile = std::string(one.name);
    const Result<Plan> plan = plan_for(policy_of(settings, std::string(kHome) + "/work"));
    ASSERT_TRUE(plan);
    const sbpl::Profile profile = parsed(*plan);
    for (const char* service :
         {"com.apple.SecurityServer", "com.apple.securityd.xpc", "com.apple.lsd.open",
          "com.apple.coreservices.launchservicesd", "com.apple.cfprefsd.agent",
          "com.apple.pasteboard.1", "com.apple.tccd"})
      EXPECT_FALSE(profile.allows({.operation = "mach-lookup", .name = service})) << service;
    for (const char* name : {"kern.proc.all", "kern.procargs2", "kern.proc.pid.1"})
      EXPECT_FALSE(profile.allows({.operation = "sysctl-read", .name = name})) << name;
    for (const char* operation :
         {"lsopen", "appleevent-send", "iokit-open", "job-creation", "system-socket", "nvram-get",
          "file-mount", "process-info-pidinfo"})
      EXPECT_FALSE(profile.allows({.operation = operation})) << operation;
    EXPECT_FALSE(profile.allows({.operation = "signal", .target = "others"}));
    EXPECT_TRUE(profile.allows({.operation = "signal", .target = "same-sandbox"}));
    EXPECT_FALSE(profile.allows("file-write-setugid", std::string(kHome) + "/work/x"));
    EXPECT_FALSE(profile.allows("file-link", std::string(kHome) + "/work/x"));
    EXPECT_TRUE(profile.allows("file-write-data", "/dev/null"));
    EXPECT_TRUE(profile.allows("file-ioctl", "/dev/ttys003"));
    for (const char* operation : {"file-read-data", "file-write-data"}) {
      EXPECT_TRUE(profile.allows(operation, "/dev/tty"));
      EXPECT_FALSE(profile.allows(operation, "/dev/ttys003")) << "another window of the person's";
      EXPECT_TRUE(profile.allows(
          {.operation = operation, .path = "/dev/ttys003", .extension = "com.apple.sandbox.pty"}));
    }
    EXPECT_FALSE(profile.allows("file-ioctl", "/dev/disk0"));
  }
}

TEST(MacPlan, names_of_hosts_are_refused_and_not_weakened) {
  const Result<Plan> plan = plan_for(restricted({.allow_net = {"example.com"}}));
  ASSERT_TRUE(plan);
  const Status refused = refuse_lost_promises(*plan);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("\"network\""), std::string::npos);
  Policy accepting = restricted({.allow_net = {"example.com"}});
  accepting.accepted = {Promise::network};
  const Result<Plan> accepted = plan_for(accepting);
  EXPECT_TRUE(refuse_lost_promises(*accepted));
  EXPECT_FALSE(
      parsed(*accepted).allows({.operation = "network-outbound", .remote = "192.0.2.1:443"}));
}

TEST(MacPlan, what_starts_by_default_and_what_does_not) {
  for (const Profile& one : profiles()) {
    Settings settings;
    settings.profile = std::string(one.name);
    const Result<Plan> plan = plan_for(policy_of(settings, std::string(kHome) + "/work"));
    EXPECT_EQ(refuse_lost_promises(*plan).has_value(), one.name != "public-bot") << one.name;
    settings.mode = "on";
    const Result<Plan> strict = plan_for(policy_of(settings, std::string(kHome) + "/work"));
    EXPECT_EQ(refuse_lost_promises(*strict).has_value(), one.name == "open") << one.name;
    settings.mode = "full";
    const Result<Plan> full = plan_for(policy_of(settings, std::string(kHome) + "/work"));
    EXPECT_FALSE(refuse_lost_promises(*full)) << one.name;
  }
}

TEST(MacPlan, a_link_that_a_guest_may_have_planted_is_not_followed) {
  seatbelt::Machine machine = mac();
  machine.links.push_back({std::string(kHome) + "/work/data", "../.ssh"});
  const Policy policy = restricted({.extra_fs_read = {std::string(kHome) + "/work/data"}});
  const Result<Plan> plan = mac_plan(policy, mac_caller(), machine);
  ASSERT_FALSE(plan);
  EXPECT_NE(plan.error().what.find("planted"), std::string::npos);
}

TEST(MacPlan, a_path_with_dots_grants_what_it_means_and_no_more) {
  const std::string given = std::string(kHome) + "/link/../other";  // link leads to real
  seatbelt::Machine machine = mac();
  machine.links.back() = {std::string(kHome) + "/link", "/Volumes/disk/x"};
  const Policy policy = restricted({.extra_fs_read = {given}});
  const sbpl::Profile profile = parsed(*mac_plan(policy, mac_caller(), machine));
  EXPECT_TRUE(profile.allows("file-read-data", "/Volumes/disk/other/a"));
  EXPECT_FALSE(profile.allows("file-read-data", std::string(kHome) + "/other/a"));
}

TEST(MacPlan, home_and_tmp_lead_to_folders_of_the_guests_own) {
  const Result<Plan> plan = plan_for(restricted());
  const std::string scratch = plan->seatbelt->scratch;
  const sbpl::Profile profile = parsed(*plan);
  for (const std::string& variable : {"HOME=" + scratch + "/home", "TMPDIR=" + scratch + "/tmp"})
    EXPECT_NE(std::ranges::find(plan->environment, variable), plan->environment.end()) << variable;
  EXPECT_TRUE(profile.allows("file-write-create", scratch + "/tmp/x"));
  EXPECT_FALSE(profile.allows("file-read-data", "/private/tmp/others"));
  EXPECT_EQ(plan->seatbelt->folders.size(), 2U);
}

TEST(MacPlan, a_credential_is_a_link_in_the_private_home) {
  Policy policy = restricted({.credential = {"/Users/me/keys/npmrc:/Users/me/.npmrc"}});
  const Result<Plan> plan = plan_for(policy);
  ASSERT_TRUE(plan) << plan.error().message();
  const seatbelt::Symlink link{plan->seatbelt->scratch + "/home/.npmrc", "/Users/me/keys/npmrc"};
  EXPECT_EQ(plan->seatbelt->links, std::vector{link});
  EXPECT_TRUE(parsed(*plan).allows("file-read-data", "/Users/me/keys/npmrc"));
  EXPECT_FALSE(parsed(*plan).allows("file-write-data", "/Users/me/keys/npmrc"));
  policy.files.credentials[0].destination = "/Users/me/work/.npmrc";
  EXPECT_FALSE(plan_for(policy));
}

TEST(MacPlan, toolchains_are_readable_and_tokens_in_them_are_not) {
  Settings settings;
  settings.profile = "developer";
  const sbpl::Profile profile =
      parsed(*plan_for(policy_of(settings, std::string(kHome) + "/work")));
  EXPECT_TRUE(profile.allows("process-exec", std::string(kHome) + "/.cargo/bin/cargo"));
  EXPECT_FALSE(profile.allows("file-read-data", std::string(kHome) + "/.cargo/credentials.toml"));
  EXPECT_FALSE(profile.allows("file-read-data", std::string(kHome) + "/.nvm/x"));  // not there
  EXPECT_FALSE(profile.allows("file-read-data", "/opt/homebrew/var/postgres/pg_hba.conf"));
}

TEST(MacPlan, limits_are_set_by_the_shell_before_the_command) {
  const Result<Plan> plan = plan_for(restricted());
  const std::vector<std::string>& wrap = plan->seatbelt->wrap;
  ASSERT_EQ(wrap.size(), 7U);
  EXPECT_EQ(wrap[0], "/usr/bin/sandbox-exec");
  EXPECT_EQ(wrap[2], plan->seatbelt->profile);
  EXPECT_EQ(wrap[5],
            "ulimit -c 0; ulimit -t 600 2>/dev/null; ulimit -f 524288 2>/dev/null; ulimit -n 1024 "
            "2>/dev/null; ulimit -u 465 2>/dev/null; exec \"$@\"");
  EXPECT_EQ(plan->seatbelt->watched_memory_mb, 2048U);
}

TEST(MacMachine, links_on_the_way_are_found) {
  const std::string folder =
      std::filesystem::canonical(::testing::TempDir()) / "mac_machine_XXXXXX";
  std::string made = folder;
  ASSERT_NE(::mkdtemp(made.data()), nullptr);
  std::filesystem::create_directories(made + "/a/b");
  std::filesystem::create_directory_symlink("a/b", made + "/link");
  std::filesystem::create_directory_symlink(made + "/link", made + "/second");
  const Policy policy = restricted({.extra_fs_read = {made + "/second/x"}});
  const seatbelt::Machine machine =
      observe_mac(policy, {.home = made, .cwd = made + "/a", .environment = {}});
  const seatbelt::Machine plain = seatbelt::plain_mac();
  EXPECT_EQ(machine.links.size(), plain.links.size() + 2);
  const std::string mac_made = seatbelt::trace(plain, made)->path;
  EXPECT_EQ(seatbelt::trace(machine, made + "/second/x")->path.substr(mac_made.size()), "/a/b/x");
  std::filesystem::remove_all(made);
}

}  // namespace
}  // namespace belljar
