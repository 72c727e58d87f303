// A program in a session as one call, from its start to its end. It is permitted, asked about
// and written down as process_start is, whose arguments it has.
#pragma once

#include <chrono>
#include <optional>

#include "server/dispatch.h"

namespace belljar::server {

// For ToolCall::instead.
Async<ToolAnswer> run_program(session::Engine& engine, ToolCall& call,
                              std::optional<std::chrono::milliseconds> time);

}  // namespace belljar::server
