// What a plan means, in words and as data.
#pragma once

#include <boost/json/fwd.hpp>
#include <string>
#include <string_view>

#include "plan/plan.h"

namespace belljar {

std::string explain(const Plan& plan);
boost::json::object explain_json(const Plan& plan);

// Which rule and layer decide about a path or HOST[:PORT], and the flag that would
// change it.
std::string explain_why(const Plan& plan, std::string_view path_or_host, const Caller& caller);

}  // namespace belljar
