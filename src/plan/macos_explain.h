// A Mac's plan in the form that `explain` knows.
#pragma once

#include "plan/macos.h"
#include "plan/plan.h"

namespace belljar {

Plan as_plan(MacPlan mac);

}  // namespace belljar
