#include "profile.h"

#include <cstdio>

#include "base/result.h"
#include "belljar/caller.h"
#include "policy/profiles.h"

namespace bench {

belljar::Result<belljar::Policy> policy_of(const std::string& profile) {
  const belljar::Caller caller = belljar::this_process();
  belljar::Settings settings;
  settings.profile = profile;
  settings.deny_net = profile == "open";
  return belljar::make_policy(settings, {.cwd = caller.cwd, .home = caller.home});
}

belljar::Result<belljar::Plan> plan_of(const std::string& profile) {
  const belljar::Policy policy = TRY(policy_of(profile));
  belljar::Result<belljar::Plan> plan =
      belljar::resolve(policy, belljar::assume_host(), belljar::this_process());
  if (!plan) std::fprintf(stderr, "%s: %s\n", profile.c_str(), plan.error().message().c_str());
  return plan;
}

}  // namespace bench
