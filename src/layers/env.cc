#include "layers/env.h"

#include <algorithm>
#include <map>

#include "layers/layout.h"

namespace belljar::env {
namespace {

constexpr std::string_view kDefaultPath = "/usr/local/bin:/usr/bin:/bin";
constexpr std::string_view kSystemPrefixes[] = {"/usr", "/bin", "/sbin",
                                                "/opt", "/nix", "/run/current-system"};

bool passes(const Environment& environment, std::string_view name) {
  return environment.everything || std::ranges::any_of(environment.pass, [&](const auto& pattern) {
           return matches(name, pattern);
         });
}

std::string system_part(std::string_view path) {
  std::string kept;
  while (!path.empty()) {
    std::string_view folder = path.substr(0, path.find(':'));
    path.remove_prefix(std::min(folder.size() + 1, path.size()));
    if (std::ranges::any_of(kSystemPrefixes, [&](auto prefix) { return is_below(folder, prefix); }))
      kept.append(kept.empty() ? "" : ":").append(folder);
  }
  return kept.empty() ? std::string(kDefaultPath) : kept;
}

}  // namespace

bool matches(std::string_view name, std::string_view pattern) {
  // On a mismatch, let the last `*` swallow one character more and try again.
  std::size_t n = 0, p = 0, star = pattern.npos, swallowed = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      swallowed = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != pattern.npos) {
      p = star + 1;
      n = ++swallowed;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == pattern.npos;
}

std::vector<std::string> resolve(const Policy& policy, const std::vector<std::string>& callers,
                                 const Inside& inside) {
  const Environment& environment = policy.environment;
  std::map<std::string, std::string, std::less<>> variables;
  for (const std::string& entry : callers) {
    std::size_t equals = entry.find('=');
    if (equals == 0 || equals == entry.npos) continue;
    std::string name = entry.substr(0, equals);
    // Ours, for ourselves: the guest has no use for it.
    if (name != "BELLJAR_SANDBOX" && passes(environment, name))
      variables[std::move(name)] = entry.substr(equals + 1);
  }
  auto path = variables.try_emplace("PATH", kDefaultPath).first;
  if (environment.system_path_only) path->second = system_part(path->second);
  if (policy.files.home == Home::temporary) {
    variables["HOME"] = inside.home;
    for (const char* name : {"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME",
                             "XDG_RUNTIME_DIR"})
      variables.erase(name);
  }
  if (!inside.tmp.empty()) variables["TMPDIR"] = inside.tmp;
  if (!inside.cache.empty()) variables["XDG_CACHE_HOME"] = inside.cache;
  for (const auto& [name, value] : environment.set) variables[name] = value;

  std::vector<std::string> result;
  for (const auto& [name, value] : variables) result.push_back(name + "=" + value);
  return result;
}

}  // namespace belljar::env
