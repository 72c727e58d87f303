// Where servers of the person who started them keep what outlives a call.
#pragma once

#include "cli/cli.h"
#include "server/audit.h"

namespace belljar::cli {

// The audit trail: in `file`, or where none is named in the person's state folder. `none`
// is none. One that was named and cannot be written is an error, the usual one a warning.
Result<server::Audit> open_audit(const std::string& file, const Policy& policy);

// The folder of the sockets by which `belljar approvals` finds servers; 0700.
Result<std::string> runtime_folder();
// Removes the sockets in it of servers that were killed.
void sweep_sockets(const std::string& folder);
// In it, the socket of `belljar serve`, which speaks HTTP.
inline constexpr const char* kServeSocket = "serve.sock";

}  // namespace belljar::cli
