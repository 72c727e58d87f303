// Whether a command may start although something is lost: the same question on every platform.
#pragma once

#include <vector>

#include "base/result.h"
#include "belljar/outcome.h"

namespace belljar {

// An error when a required promise is broken and its loss was not accepted by name (in mode
// `on`: when anything at all is lost).
Status refuse_lost_promises(const Policy& policy, const std::vector<Loss>& losses);

}  // namespace belljar
