// A described Mac, and policies for it.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plan/macos_explain.h"
#include "policy/profiles.h"
#include "support/sbpl.h"

namespace belljar::testing_mac {

inline constexpr const char* kHome = "/Users/me";

// One kind of path: what a person may call a folder.
struct PathKind {
  const char* name;
  std::string folder;
  std::string real;  // as the kernel names it
};

inline std::vector<PathKind> path_kinds() {
  const std::string home = kHome;
  return {{"plain", home + "/work", home + "/work"},
          {"spaces", home + "/my work  here", home + "/my work  here"},
          {"quotes", home + "/a\"b'c\\d\\", home + "/a\"b'c\\d\\"},
          {"newline", home + "/a\nb;c", home + "/a\nb;c"},
          {"unicode", home + "/wörk ✓ 日本", home + "/wörk ✓ 日本"},
          {"symlinked", home + "/link/in", home + "/real/in"}};
}

inline seatbelt::Machine mac() {
  seatbelt::Machine machine = seatbelt::plain_mac();
  machine.links.push_back({std::string(kHome) + "/link", "real"});
  machine.folders = {std::string(kHome) + "/.cargo", "/opt/tools/bin", "/opt/tools/lib"};
  machine.processes = 400;
  return machine;
}

inline Caller mac_caller(const std::string& cwd = std::string(kHome) + "/work") {
  return {.home = kHome,
          .cwd = cwd,
          .environment = {"PATH=/opt/tools/bin:/usr/bin:/bin", std::string("HOME=") + kHome,
                          "LANG=C", "TOKEN=secret", "TMPDIR=/var/folders/zz/T/"}};
}

inline Policy policy_of(const Settings& settings, const std::string& cwd) {
  Result<Policy> policy = make_policy(settings, {.cwd = cwd, .home = kHome});
  EXPECT_TRUE(policy) << policy.error().message();
  return policy.value_or(Policy{});
}

inline Result<Plan> mac_plan(const Policy& policy, const Caller& caller,
                             const seatbelt::Machine& machine) {
  Result<MacPlan> plan = resolve_for_mac(policy, caller, machine);
  if (!plan) return std::unexpected(plan.error());
  return as_plan(std::move(*plan));
}

inline sbpl::Profile parsed(const Plan& plan) {
  auto profile = sbpl::Profile::parse(plan.seatbelt->profile);
  EXPECT_TRUE(profile) << profile.error() << "\n" << plan.seatbelt->profile;
  return profile.value_or(sbpl::Profile{});
}

}  // namespace belljar::testing_mac
