#include "profile.h"

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
  return belljar::resolve(policy, belljar::assume_host(), belljar::this_process());
}

}  // namespace bench
