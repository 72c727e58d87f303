// JSON for people and programs: the parts that more than one report has.
#pragma once

#include <boost/json/fwd.hpp>
#include <string>
#include <vector>

#include "belljar/outcome.h"

namespace belljar {

// Indented, ending in a newline. Invalid UTF-8 (a path may hold any byte) is
// replaced, so that the result is always JSON.
std::string pretty(const boost::json::value& value);

boost::json::object promises_to_json(const std::vector<Kept>& kept);
boost::json::array losses_to_json(const std::vector<Loss>& losses);

}  // namespace belljar
