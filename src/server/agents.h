// Agent files: `agents/NAME.md`, Markdown with YAML front matter, whose `permission:` says
// what an agent of that name may do. They give permissions only, which are combined with
// the operator's by the strictest: no agent file can loosen anything.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policy/permissions.h"

namespace belljar::server {

struct Agent {
  std::string name;
  std::string description;
  Permissions permissions;         // what is not named is denied
  std::vector<std::string> notes;  // what it asks for that we do not have
};

// `name` is what it is called where it does not say so itself.
Result<Agent> parse_agent(std::string_view text, std::string name);

// The agent of a file, named after it where it does not say so itself. Errors name the file.
Result<Agent> load_agent(const std::string& path);

// All of a folder, by name. A folder that is not there has none.
struct AgentFolder {
  std::map<std::string, Agent> agents;
  std::vector<std::string> broken;  // why the other files are none
};
Result<AgentFolder> load_agents(const std::string& folder);

}  // namespace belljar::server
