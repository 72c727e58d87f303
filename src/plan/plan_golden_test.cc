// What each profile means on each kind of host, in the words of `explain`.
// BELLJAR_UPDATE_GOLDEN=1 rewrites tests/golden/plan.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "base/file.h"
#include "plan/explain.h"
#include "plan/plan.h"
#include "plan/supposed.h"
#include "policy/profiles.h"

namespace belljar {
namespace {

struct Machine {
  const char* name;
  Host host;
};

Host full_host() { return supposed_host("/sys/fs/cgroup/user.slice"); }

std::vector<Machine> machines() {
  std::vector<Machine> all{{"full", full_host()}};
  Host host = full_host();
  host.identity.user_namespaces = false;
  host.identity.why_not = "No space left on device";
  host.view.idmap = false;
  host.view.why_no_idmap = "No space left on device";
  all.push_back({"no_userns", host});
  host.landlock.abi = 2;
  all.push_back({"no_userns_abi_2", host});
  host.landlock.abi = 0;
  host.cgroup = {.parent = {}, .why_not = "no controllers are delegated"};
  all.push_back({"neither", host});
  host = full_host();
  host.landlock.abi = 0;
  all.push_back({"no_landlock", host});
  for (int abi : {1, 4, 6}) {
    host = full_host();
    host.landlock.abi = abi;
    all.push_back({abi == 1 ? "abi_1" : abi == 4 ? "abi_4" : "abi_6", host});
  }
  host = full_host();
  host.cgroup = {.parent = {}, .why_not = "cgroup v2 is not mounted at /sys/fs/cgroup"};
  all.push_back({"no_cgroup", host});
  host.view.proc = false;
  host.view.why_no_proc = "Operation not permitted";
  all.push_back({"no_proc", host});
  return all;
}

// What is on this machine and not on another is left out: which system folders
// and toolchains there are, and so how many mounts.
std::string portable(std::string text, const std::string& folder) {
  text = std::regex_replace(text, std::regex("[^\n]*\\((system|toolchain)\\)\n"), "");
  text = std::regex_replace(text, std::regex("with \\d+ mount steps"), "with mounts");
  text = std::regex_replace(text, std::regex("/tmp/belljar-[0-9]+-[A-Za-z0-9]+"), "<scratch>");
  return std::regex_replace(text, std::regex(folder), "<folder>");
}

class PlanGolden : public testing::TestWithParam<std::tuple<std::size_t, bool>> {};

TEST_P(PlanGolden, is_what_explain_says) {
  auto [index, root] = GetParam();
  Machine machine = machines()[index];
  machine.host.identity.root = root;
  std::string folder = testing::TempDir() + "plan_golden_XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  for (const char* name : {"/home", "/home/work"})
    ASSERT_EQ(::mkdir((folder + name).c_str(), 0755), 0);
  const Caller caller{.home = folder + "/home",
                      .cwd = folder + "/home/work",
                      .environment = {"PATH=/usr/bin:/bin", "HOME=" + folder + "/home", "LANG=C",
                                      "TOKEN=secret", "JAVA_HOME=/nowhere"}};
  std::string text;
  for (const Profile& profile : profiles()) {
    Settings settings;
    settings.profile = std::string(profile.name);
    Result<Policy> policy = make_policy(settings, {.cwd = caller.cwd, .home = caller.home});
    ASSERT_TRUE(policy) << policy.error().message();
    Result<Plan> plan = resolve(*policy, machine.host, caller, Purpose::explain);
    ASSERT_TRUE(plan) << plan.error().message();
    text += "======== " + std::string(profile.name) + "\n" + portable(explain(*plan), folder);
    Status refused = refuse_lost_promises(*plan);
    text += refused ? "\nIt starts.\n\n" : "\nIt is refused: " + refused.error().message() + "\n\n";
  }
  std::filesystem::remove_all(folder);

  const std::string path = std::string(BELLJAR_GOLDEN_DIR) + "/plan/" + machine.name +
                           (root ? "_root" : "_user") + ".txt";
  if (std::getenv("BELLJAR_UPDATE_GOLDEN") != nullptr) {
    std::filesystem::create_directories(std::string(BELLJAR_GOLDEN_DIR) + "/plan");
    std::ofstream(path) << text;
  }
  EXPECT_EQ(text, read_text(path).value_or("(missing)")) << "BELLJAR_UPDATE_GOLDEN=1 rewrites it";
}

INSTANTIATE_TEST_SUITE_P(Hosts, PlanGolden,
                         testing::Combine(testing::Range<std::size_t>(0, machines().size()),
                                          testing::Bool()),
                         [](const auto& one) {
                           return std::string(machines()[std::get<0>(one.param)].name) +
                                  (std::get<1>(one.param) ? "_root" : "_user");
                         });

}  // namespace
}  // namespace belljar
