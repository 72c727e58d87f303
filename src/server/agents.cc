#include "server/agents.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/printable.h"
#include "policy/keys.h"
#include "server/front_matter.h"
#include "tools/tool_table.h"

namespace belljar::server {
namespace {

constexpr std::string_view kOurKeys[] = {"name", "description", "permission"};
constexpr std::size_t kMaxFile = std::size_t{1} << 20;
constexpr std::size_t kMaxFrontMatter = std::size_t{64} << 10;
constexpr std::size_t kMaxAgents = 1000;

// What other programs call our tools.
std::string our_name(const std::string& tool) {
  if (tool == "bash" || tool == "sh") return "shell";
  return tool;
}

bool is_ours(std::string_view tool) {
  const auto is_named = [&](const tools::Tool& one) { return one.name == tool; };
  return std::ranges::any_of(tools::all_tools(), is_named);
}

class Reader {
 public:
  explicit Reader(std::string name) { agent_.name = std::move(name); }

  Result<Agent> read(const YAML::Node& root) {
    if (!root.IsMap()) return fail("its front matter is no table");
    agent_.permissions.otherwise = Permission::deny;
    if (const YAML::Node name = root["name"]; name.IsDefined() && name.IsScalar())
      agent_.name = name.Scalar();
    if (const YAML::Node about = root["description"]; about.IsDefined() && about.IsScalar())
      agent_.description = about.Scalar();
    const YAML::Node permission = root["permission"];
    TRY(check_keys(root, permission));
    if (permission.IsDefined() && permission.IsMap()) {
      for (const auto& entry : permission) TRY(take(entry.first, entry.second));
    } else if (permission.IsDefined() && permission.IsNull()) {
      // A list whose indentation was lost on its way.
      for (const auto& entry : root)
        if (entry.first.IsScalar() && !is_own_key(entry.first.Scalar()))
          TRY(take(entry.first, entry.second));
    } else if (permission.IsDefined()) {
      return fail("permission: must be a table of tools");
    }
    return std::move(agent_);
  }

 private:
  static bool is_own_key(std::string_view key) {
    for (std::string_view own : {"name", "mode", "description", "permission", "model", "tools",
                                 "temperature", "top_p", "color", "hidden", "steps"})
      if (key == own) return true;
    return false;
  }

  // Other programs have keys of their own, which mean nothing here. But a word that was to be
  // `permission` would leave an agent that may do nothing, and nobody would see why.
  Status check_keys(const YAML::Node& root, const YAML::Node& permission) {
    if (permission.IsDefined() && permission.IsNull()) return {};  // they are tools
    std::string others;
    for (const auto& entry : root) {
      if (!entry.first.IsScalar() || is_own_key(entry.first.Scalar())) continue;
      const std::string key = printable(entry.first.Scalar());
      const std::string_view near = nearest(key, kOurKeys);
      if (!near.empty())
        return fail("unknown key " + key, 0, "did you mean " + std::string(near) + "?");
      others += (others.empty() ? "" : ", ") + key;
    }
    if (permission.IsDefined()) return {};
    if (!others.empty())
      return fail("it has no key permission, and " + others + " means nothing here", 0,
                  "name, description and permission are read");
    agent_.notes.emplace_back("it has no key permission, so it may do nothing");
    return {};
  }

  Status take(const YAML::Node& key, const YAML::Node& value) {
    if (!key.IsScalar()) return fail("permission: the name of a tool must be a word");
    const std::string& given = key.Scalar();
    const std::string tool = our_name(given);
    std::vector<PermissionRule> rules;
    if (value.IsScalar()) {
      rules.push_back({"*", TRY(permission(given, value.Scalar()))});
    } else if (value.IsMap()) {
      for (const auto& entry : value) {
        if (!entry.first.IsScalar() || !entry.second.IsScalar())
          return fail("permission: " + printable(given) + ": patterns are words");
        rules.push_back({entry.first.Scalar(), TRY(permission(given, entry.second.Scalar()))});
      }
    } else {
      return fail("permission: " + printable(given) + ": must be allow, ask, deny or patterns");
    }
    if (tool == "*" && value.IsScalar()) {
      agent_.permissions.otherwise = rules.front().permission;
      return {};
    }
    if (!is_ours(tool)) {
      const std::string_view near = nearest(tool, tool_names());
      agent_.notes.push_back("there is no tool " + printable(given) + " here" +
                             (near.empty() ? "" : "; did you mean " + std::string(near) + "?"));
      return {};
    }
    std::vector<PermissionRule>& all = agent_.permissions.tools[tool];
    all.insert(all.end(), rules.begin(), rules.end());
    return {};
  }

  static Result<Permission> permission(const std::string& tool, const std::string& text) {
    const std::optional<Permission> known = parse_permission(text);
    if (known) return *known;
    return fail("permission: " + printable(tool) + ": " + printable(text) +
                " is not one of allow, ask, deny");
  }

  Agent agent_;
};

}  // namespace

Result<Agent> parse_agent(std::string_view text, std::string name) {
  const std::string yaml = TRY(front_matter(text, kMaxFrontMatter));
  try {
    return Reader(std::move(name)).read(YAML::Load(yaml));
  } catch (const YAML::Exception& error) {
    return fail("its front matter is no YAML: " + printable(error.what()));
  }
}

Result<Agent> load_agent(const std::string& path) {
  const std::string text = TRY(read_regular(path, kMaxFile));
  Result<Agent> agent = parse_agent(text, std::filesystem::path(path).stem());
  if (!agent) return fail(printable(path) + ": " + agent.error().what, 0, agent.error().hint);
  return agent;
}

Result<AgentFolder> load_agents(const std::string& folder) {
  AgentFolder found;
  std::error_code error;
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() != ".md") continue;
    if (paths.size() >= kMaxAgents) return fail("there are too many agents in " + folder);
    paths.push_back(entry.path());
  }
  if (error && error != std::errc::no_such_file_or_directory)
    return fail("read " + folder, error.value());
  std::ranges::sort(paths);  // or which of two is taken would be anybody's guess
  for (const std::string& path : paths) {
    Result<Agent> agent = load_agent(path);
    if (!agent) {
      found.broken.push_back(agent.error().message());
      continue;
    }
    std::string name = agent->name;
    if (!found.agents.emplace(name, *std::move(agent)).second)
      found.broken.push_back(printable(path) + ": another file is about the agent " +
                             printable(name) + " too");
  }
  return found;
}

}  // namespace belljar::server
