// The order in which tasks run.
#pragma once

#include <span>

#include "policy/toml.h"

namespace belljar {

// The tasks named and all they depend on, each once, dependencies first.
Result<std::vector<const Tasks::value_type*>> task_order(const Config& config,
                                                         std::span<const std::string_view> names);

}  // namespace belljar
