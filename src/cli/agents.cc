#include "cli/agents.h"

#include "cli/configuration.h"

namespace belljar::cli {

Result<std::map<std::string, server::Agent>> find_agents(const std::string& folder,
                                                         const Loaded& loaded,
                                                         const Caller& caller) {
  if (!folder.empty()) return server::load_agents(folder);
  const ConfigPlaces places = config_places(caller);
  const std::string& workdir = loaded.session.workdir;
  const std::string own = places.user_file.substr(0, places.user_file.rfind('/')) + "/agents";
  std::map<std::string, server::Agent> all = TRY(server::load_agents(own));
  // A guest can write there, so it is not asked about an agent that the person has.
  all.merge(TRY(server::load_agents((workdir.empty() ? caller.cwd : workdir) + "/agents")));
  return all;
}

Result<server::Agent> find_agent(const std::string& name,
                                 const std::map<std::string, server::Agent>& agents) {
  const auto found = agents.find(name);
  if (found == agents.end())
    return fail("there is no agent " + name, 0,
                "agents are files agents/NAME.md; --agents names another folder");
  for (const std::string& note : found->second.notes) print_detail("agent " + name + ": " + note);
  return found->second;
}

}  // namespace belljar::cli
