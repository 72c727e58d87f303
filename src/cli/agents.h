// Where agent files are found. They can only take away, so nobody need trust them.
#pragma once

#include <map>
#include <string>

#include "cli/cli.h"
#include "policy/load.h"
#include "server/agents.h"

namespace belljar::cli {

// Those of the folder; without one the project's own and the person's.
Result<std::map<std::string, server::Agent>> find_agents(const std::string& folder,
                                                         const Loaded& loaded,
                                                         const Caller& caller);

// One of them, whose notes are printed.
Result<server::Agent> find_agent(const std::string& name,
                                 const std::map<std::string, server::Agent>& agents);

}  // namespace belljar::cli
