// What a plan means, in words and as data.
#pragma once

#include <boost/json/fwd.hpp>
#include <string>
#include <string_view>

#include "plan/plan.h"

namespace belljar {

std::string explain(const Plan& plan);
boost::json::object explain_json(const Plan& plan);

// Which rule and layer decide about a path, a HOST[:PORT] or a $VARIABLE, and the flag that
// would change it.
std::string explain_why(const Plan& plan, std::string_view asked, const Caller& caller);

}  // namespace belljar
