// belljar.toml described for editors: JSON Schema, draft 2020-12, from the table
// of keys.
#pragma once

#include <boost/json/fwd.hpp>

namespace belljar::cli {

boost::json::object config_schema();

}  // namespace belljar::cli
