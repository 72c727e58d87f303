// The answers of a session as JSON: what scripts, the server and bindings give out.
#pragma once

#include <boost/json/fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "belljar/session.h"

namespace belljar::session {

boost::json::object to_json(const PythonResult& result);
boost::json::object to_json(const ShellResult& result);

std::string base64(std::string_view bytes);
// nullopt: it is none.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace belljar::session
