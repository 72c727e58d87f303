// What a project that is not trusted must stay within, when its paths are opened.
#pragma once

#include "base/result.h"
#include "plan/plan.h"
#include "policy/widening.h"

namespace belljar {

// The project was judged by where its paths led when its file was read. A guest that runs
// meanwhile may have changed that, so what counts is what was opened. `own` is a folder that
// belljar made for this guest, which no project has named; empty: there is none.
Status check_bound(const Plan& plan, const Reach& bound, const std::string& own = {});

}  // namespace belljar
