// The names in a configuration that stand for something: groups, profiles, tasks.
#pragma once

#include "policy/toml.h"

namespace belljar {

// Each is there, and none leads back to itself.
Status check_names(const Config& config, const ConfigSource& source);

}  // namespace belljar
