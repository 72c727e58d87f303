// Where agent files are found. They can only take away, so nobody need trust them.
#pragma once

#include <map>
#include <string>

#include "cli/cli.h"
#include "policy/load.h"
#include "server/agents.h"

namespace belljar::cli {

// Of the folder; without one of the person's own and the project's. A guest can write to the
// latter, so it is not asked about an agent that the person has.
std::vector<std::string> agent_folders(const std::string& folder, const Loaded& loaded,
                                       const Caller& caller);

// The one that is meant: NAME.md, or a file that calls itself so. Other files may be broken.
Result<server::Agent> find_agent(const std::string& name, const std::vector<std::string>& folders);

// All that there are; of files that are broken it is said why.
Result<std::map<std::string, server::Agent>> all_agents(const std::vector<std::string>& folders);

}  // namespace belljar::cli
