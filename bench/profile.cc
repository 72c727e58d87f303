#include "profile.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/result.h"
#include "policy/profiles.h"

namespace bench {

belljar::Result<belljar::Plan> plan_of(const std::string& profile) {
  belljar::Caller caller;
  caller.home = std::getenv("HOME");
  caller.cwd = std::filesystem::current_path();
  for (char** variable = environ; *variable != nullptr; ++variable)
    caller.environment.emplace_back(*variable);
  belljar::Settings settings;
  settings.profile = profile;
  settings.deny_net = profile == "open";
  belljar::Policy policy =
      TRY(belljar::make_policy(settings, {.cwd = caller.cwd, .home = caller.home}));
  return belljar::resolve(policy, belljar::assume_host(), caller);
}

}  // namespace bench
