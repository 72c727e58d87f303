#include "plan/toolchain_names.h"

#include <algorithm>
#include <string_view>

#include "belljar/caller.h"

namespace belljar {
namespace {

std::string_view variable(const Caller& caller, std::string_view name) {
  for (const std::string& entry : caller.environment)
    if (entry.starts_with(name) && entry.size() > name.size() && entry[name.size()] == '=')
      return std::string_view(entry).substr(name.size() + 1);
  return {};
}

}  // namespace

ToolchainNames toolchain_names(const Caller& caller) {
  ToolchainNames names;
  auto add_each = [](std::vector<std::string>& to, std::string_view list, const char* below = "") {
    while (!list.empty()) {
      std::string_view path = list.substr(0, list.find(':'));
      list.remove_prefix(std::min(path.size() + 1, list.size()));
      while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
      if (path.starts_with('/')) to.push_back(std::string(path) + below);
    }
  };
  for (const char* name : kLocations) add_each(names.folders, variable(caller, name));
  for (const char* name : kSearchPaths) add_each(names.folders, variable(caller, name));
  for (const char* part : {"/bin", "/pkg"})
    add_each(names.folders, variable(caller, "GOPATH"), part);
  for (const char* folder : kHomeFolders) names.folders.push_back(caller.home + "/" + folder);
  add_each(names.programs, variable(caller, "PATH"));
  for (const char* secret : kSecrets) names.secrets.push_back(caller.home + "/" + secret);
  if (std::string_view cargo = variable(caller, "CARGO_HOME"); cargo.starts_with('/'))
    for (const char* file : {"/credentials", "/credentials.toml"})
      names.secrets.push_back(std::string(cargo) + file);
  return names;
}

}  // namespace belljar
