// From the package's JSON to values, and from errors to its JSON.
#pragma once

#include <boost/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "belljar/belljar.h"
#include "belljar/session.h"
#include "policy/permissions.h"
#include "policy/settings.h"

namespace belljar::python {

Result<boost::json::object> parse(const char* text, std::size_t size);

// The object, text or list at `name`; empty if there is none.
const boost::json::object& object_in(const boost::json::object& object, std::string_view name);
std::string text_in(const boost::json::object& object, std::string_view name);
std::int64_t number_in(const boost::json::object& object, std::string_view name,
                       std::int64_t otherwise);
bool flag_in(const boost::json::object& object, std::string_view name);
Result<std::vector<std::string>> texts_in(const boost::json::object& object, std::string_view name);

Caller read_caller(const boost::json::object& request);

// "sandbox": keys of a policy, as the one table has them.
struct Asked {
  Settings settings;
  Policy policy;
};
Result<Asked> read_policy(const boost::json::object& request, const Caller& caller);

// "command".
Result<Command> read_command(const boost::json::object& request, std::string input);
// "session": keys of [session].
Result<SessionSettings> read_session(const boost::json::object& request, const Caller& caller);
// "permissions": a list of {"otherwise": ..., "tools": {NAME: ...}}.
Result<std::vector<Permissions>> read_permissions(const boost::json::object& request);

boost::json::object error_json(std::string_view kind, const Error& error);
// An error of a launch: "unavailable", with the losses, if it is one that the host is to blame for.
boost::json::object launch_error_json(const Error& error, const Policy& policy,
                                      const Caller& caller);

// Memory for the caller, who frees it.
void* give(std::string_view bytes, std::size_t* size);
void* give(const boost::json::object& object, std::size_t* size);

}  // namespace belljar::python
