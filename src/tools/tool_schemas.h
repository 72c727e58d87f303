// JSON schemas (2020-12) of what tools take and give, from a few words each.
#pragma once

#include <boost/json/object.hpp>
#include <string_view>

namespace belljar::tools::schemas {

struct Schemas {
  boost::json::object input, output;
};

// By the tool's name; a name that is not in the table is a bug.
Schemas of(std::string_view tool);

}  // namespace belljar::tools::schemas
