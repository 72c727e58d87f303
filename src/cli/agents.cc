#include "cli/agents.h"

#include <sys/stat.h>

#include "cli/configuration.h"
#include "policy/keys.h"

namespace belljar::cli {
namespace {

std::string joined(const std::vector<std::string>& words, std::string_view by) {
  std::string text;
  for (const std::string& word : words) text.append(text.empty() ? "" : by).append(word);
  return text;
}

bool is_there(const std::string& path) {
  struct stat found{};
  return ::stat(path.c_str(), &found) == 0;
}

std::unexpected<Error> no_agent(const std::string& name, const std::vector<std::string>& folders,
                                const std::vector<std::string>& known) {
  const std::string what = "there is no agent " + name + " in " + joined(folders, " or ");
  if (known.empty())
    return fail(what, 0, "an agent is a file agents/NAME.md; --agents=FOLDER names another folder");
  const std::vector<std::string_view> names(known.begin(), known.end());
  const std::string_view near = nearest(name, names);
  return fail(what, 0,
              (near.empty() ? "" : "did you mean " + std::string(near) + "? ") +
                  std::string("there are ") + joined(known, ", "));
}

void print_notes_of(const std::string& name, const server::Agent& agent) {
  for (const std::string& note : agent.notes) {
    const std::string text = "agent " + name + ": " + note;
    // That it asks for tools which only other programs have is no news to anybody.
    if (note.starts_with("there is no tool") && !note.ends_with('?'))
      print_detail(text);
    else
      print_warning(text);
  }
}

}  // namespace

std::vector<std::string> agent_folders(const std::string& folder, const Loaded& loaded,
                                       const Caller& caller) {
  if (!folder.empty()) return {folder};
  const std::string config = config_places(caller).user_file;
  const std::string& workdir = loaded.session.workdir;
  return {config.substr(0, config.rfind('/')) + "/agents",
          (workdir.empty() ? caller.cwd : workdir) + "/agents"};
}

Result<server::Agent> find_agent(const std::string& name, const std::vector<std::string>& folders) {
  if (name.find('/') != name.npos || name.starts_with('.'))
    return fail(name + " is no name of an agent", 0,
                "--agent=NAME means agents/NAME.md; --agents=FOLDER names another folder");
  std::vector<std::string> known;
  for (const std::string& folder : folders) {
    const std::string own = folder + "/" + name + ".md";
    std::optional<server::Agent> found;
    if (is_there(own)) {
      found = TRY(server::load_agent(own));
    } else {
      const server::AgentFolder all = TRY(server::load_agents(folder));
      for (const auto& [other, agent] : all.agents) known.push_back(other);
      if (const auto at = all.agents.find(name); at != all.agents.end()) found = at->second;
      // It might have been in one of these.
      if (!found)
        for (const std::string& why : all.broken) print_warning(why);
    }
    if (!found) continue;
    print_notes_of(name, *found);
    return *found;
  }
  return no_agent(name, folders, known);
}

Result<std::map<std::string, server::Agent>> all_agents(const std::vector<std::string>& folders) {
  std::map<std::string, server::Agent> all;
  for (const std::string& folder : folders) {
    server::AgentFolder found = TRY(server::load_agents(folder));
    for (const std::string& why : found.broken) print_warning(why);
    all.merge(found.agents);
  }
  return all;
}

}  // namespace belljar::cli
