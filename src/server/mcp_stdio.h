// MCP over two descriptors: a message is a line. What the client does not read waits, up to
// a bound; a client that reads nothing at all is ended with.
#pragma once

#include "server/mcp_service.h"

namespace belljar::server {

// Until the input ends, or stop is asked for. What runs then gets a moment to be answered,
// if there is still somebody who reads.
Async<void> serve_stdio(McpService& service, int in_fd, int out_fd, std::shared_ptr<Cancel> stop);

}  // namespace belljar::server
