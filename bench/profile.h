// The policy and the plan of a profile, for the folder and the environment we are in.
#pragma once

#include <string>

#include "plan/plan.h"

namespace bench {

// `open` denies the network, since by itself it denies nothing.
belljar::Result<belljar::Policy> policy_of(const std::string& profile);
belljar::Result<belljar::Plan> plan_of(const std::string& profile);

}  // namespace bench
