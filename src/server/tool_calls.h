// A call of a tool as HTTP makes it: counted, heard of, and judged by its outcome.
#pragma once

#include <optional>

#include "server/app.h"

namespace belljar::server {

// Of a session that the caller was found to see: the call is made with its owner's rights, and
// cannot name another session.
ToolCall tool_call(const SessionEntry& entry, const Principal& caller, std::string tool,
                   boost::json::object arguments);

Async<ToolAnswer> call_tool(App& app, ToolCall call);

// Where the tool did not run. What it came to when it ran is no fault.
std::optional<Fault> fault_of(const ToolAnswer& answer);

// As `viewer` calls its session.
boost::json::object to_json(const ToolAnswer& answer, std::string_view viewer);

}  // namespace belljar::server
