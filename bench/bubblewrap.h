// The bubblewrap command that isolates as a plan does: the same namespaces, the
// same binds at the same places, no capabilities. (It lacks what bubblewrap does
// not have: limits, Landlock, and a filter, which it could only be handed.)
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace bench {

struct Bubblewrap {
  std::vector<std::string> arguments;
  std::vector<int> data_fds;  // read by each run, so to be rewound before it
};

Bubblewrap bubblewrap_like(const belljar::Plan& plan, const std::vector<std::string>& command);

}  // namespace bench
