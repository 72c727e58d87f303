#include "cli/notices.h"

#include <sys/stat.h>

#include <algorithm>

#include "layers/env.h"
#include "policy/keys.h"

namespace belljar::cli {
namespace {

bool exists(const std::string& path) {
  struct stat st{};
  return ::lstat(path.c_str(), &st) == 0;
}

bool is_set(const Settings& settings, const Key& key) {
  const Settings nothing;
  return std::visit([&](auto member) { return settings.*member != nothing.*member; }, key.target);
}

bool is_deny_or_allow(const Key& key) {
  return key.name.starts_with("deny_") || key.name.starts_with("allow_");
}

// The first deny or allow that was typed, as it was typed.
std::string deny_or_allow(const Settings& flags) {
  for (const Key& key : keys())
    if (is_deny_or_allow(key) && is_set(flags, key)) return "--" + std::string(key.flag);
  return {};
}

// A deny without a profile starts from `open`. Who wanted the default less something
// would run a stranger's code with the whole home in sight.
std::optional<std::string> starts_from_open(const Settings& flags, const Loaded& loaded) {
  const Files& files = loaded.policy.files;
  if (loaded.settings.profile || loaded.policy.mode == Mode::off) return std::nullopt;
  if (!flags.denies_or_allows() || files.reads != Reads::everything) return std::nullopt;
  Settings network_only;
  network_only.deny_net = true;
  Settings asked;
  for (const Key& key : keys())
    if (is_deny_or_allow(key))
      std::visit([&](auto member) { asked.*member = flags.*member; }, key.target);
  return deny_or_allow(flags) + " without --profile starts from \"open\": all your files stay " +
         (files.writes_everything ? "readable and writable" : "readable") +
         (asked == network_only ? " (for the default jar without a network: --network=none)"
                                : " (to start from the default jar: --profile=developer)");
}

// As the person would write it, where that is shorter.
std::string short_name(const std::string& path, const Caller& caller) {
  const std::string folder = caller.cwd + "/";
  return path.starts_with(folder) && path.size() > folder.size() ? path.substr(folder.size())
                                                                 : path;
}

// `--hide=a,b` is one strange name; most likely two were meant.
bool parts_exist(const std::string& path, const Caller& caller) {
  if (path.find(',') == path.npos) return false;
  std::string_view rest = path;
  while (!rest.empty()) {
    std::string part(rest.substr(0, rest.find(',')));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    if (!part.starts_with('/')) part.insert(0, caller.cwd + "/");
    if (!exists(part)) return false;
  }
  return true;
}

void add_missing_paths(std::vector<std::string>& lines, const Settings& flags,
                       const Caller& caller) {
  for (const Key& key : keys()) {
    if (key.kind != Kind::paths && key.kind != Kind::globs) continue;
    for (const std::string& path :
         flags.*std::get<std::vector<std::string> Settings::*>(key.target)) {
      const bool glob = key.kind == Kind::globs && path.find_first_of("*?[") != path.npos;
      if (glob || exists(path)) continue;
      const std::string flag = "--" + std::string(key.flag) + "=" + short_name(path, caller);
      if (parts_exist(path, caller))
        lines.push_back(flag + ": there is no such path; repeat the flag for each path");
      else if (key.name == "hide")
        lines.push_back(flag + ": nothing there to hide");
      else if (key.name == "allow_write" || key.name == "extra_fs_write")
        lines.push_back(flag + ": is not there, and is made as a folder");
    }
  }
}

bool matches_any(const std::string& pattern, const std::vector<std::string>& environment) {
  return std::ranges::any_of(environment, [&](const std::string& variable) {
    return env::matches(variable.substr(0, variable.find('=')), pattern);
  });
}

void add_missing_variables(std::vector<std::string>& lines, const Settings& flags,
                           const Caller& caller) {
  for (const auto& [flag, names] :
       {std::pair("--allow-env=", &flags.allow_env), std::pair("--extra-env=", &flags.extra_env)})
    for (const std::string& name : *names)
      if (!matches_any(name, caller.environment))
        lines.push_back(flag + name + ": no such variable is set");
}

}  // namespace

std::vector<std::string> notices(const Settings& flags, const Loaded& loaded,
                                 const Caller& caller) {
  std::vector<std::string> lines;
  if (std::optional<std::string> open = starts_from_open(flags, loaded))
    lines.push_back(std::move(*open));
  if (loaded.policy.mode == Mode::off) return lines;
  add_missing_paths(lines, flags, caller);
  add_missing_variables(lines, flags, caller);
  return lines;
}

}  // namespace belljar::cli
