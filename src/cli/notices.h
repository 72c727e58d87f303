// What a person should hear before a guest starts: flags that do something else
// than they seem to.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/cli.h"
#include "policy/load.h"

namespace belljar::cli {

// One line each. `flags` are those that were typed, `loaded` all sources together.
std::vector<std::string> notices(const Settings& flags, const Loaded& loaded, const Caller& caller);

}  // namespace belljar::cli
