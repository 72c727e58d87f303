// Which promises a plan keeps and by what, and which it cannot.
#pragma once

#include "plan/plan.h"

namespace belljar {

// Fills `kept` and `losses`.
void judge_promises(Plan& plan, const Host& host);

}  // namespace belljar
