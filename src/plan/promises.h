// Which promises a plan keeps and by what, and which it cannot.
#pragma once

#include "plan/plan.h"

namespace belljar {

// Fills `kept` and `losses`; an error when a required promise is broken and its
// loss was not accepted by name.
Status judge_promises(Plan& plan, const Host& host);

}  // namespace belljar
