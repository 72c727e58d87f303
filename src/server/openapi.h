// The OpenAPI 3.1 document of the table of routes, and a page for people of the same.
#pragma once

#include <boost/json/fwd.hpp>
#include <span>
#include <string>

#include "server/route.h"

namespace belljar::server {

boost::json::object openapi(std::span<const Route> table);
std::string openapi_page(std::span<const Route> table);

// The schemas that routes name, by name.
boost::json::object schemas();

}  // namespace belljar::server
