// The answers of a session as JSON: what scripts, the server and bindings give out.
#pragma once

#include <boost/json/fwd.hpp>

#include "belljar/session.h"

namespace belljar::session {

boost::json::object to_json(const PythonResult& result);
boost::json::object to_json(const ShellResult& result);

}  // namespace belljar::session
