// Whether the parts of a policy fit together. What makes a policy from settings cannot
// say: it is also asked what a part of them would come to.
#pragma once

#include "base/result.h"
#include "belljar/policy.h"

namespace belljar {

Status validate(const Policy& policy);

}  // namespace belljar
