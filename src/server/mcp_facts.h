#pragma once

#include "server/mcp_connection.h"

namespace belljar::server {

// Who belljar says that it is, and what it can do.
McpFacts mcp_facts();

}  // namespace belljar::server
