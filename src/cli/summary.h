// A policy for people in one line, and whole as JSON.
#pragma once

#include <boost/json/fwd.hpp>
#include <string>

#include "belljar/policy.h"

namespace belljar::cli {

std::string summary(const Policy& policy);
boost::json::object policy_to_json(const Policy& policy);

}  // namespace belljar::cli
