#include "policy/widening.h"

#include <fnmatch.h>

#include <algorithm>
#include <filesystem>

#include "policy/net_rule.h"

namespace belljar {
namespace {

using Why = std::optional<std::string>;

// ---- paths ----
// The path after symlinks and `..`. One that cannot be resolved (a circle of
// symlinks) lies nowhere.
std::string real_path(const std::string& path) {
  std::error_code error;
  std::string real = std::filesystem::weakly_canonical(path, error);
  while (real.size() > 1 && real.ends_with('/')) real.pop_back();
  return error ? "" : real;
}

bool is_in(std::string_view path, std::string_view tree) {
  if (tree == "/") return path.starts_with('/');
  return !tree.empty() && path.starts_with(tree) &&
         (path.size() == tree.size() || path[tree.size()] == '/');
}

// As ranks, so that they compare: nothing, read, write.
int rank(Access access) {
  switch (access) {
    case Access::hide:
      return 0;
    case Access::read:
    case Access::protect:
      return 1;
    case Access::write:
      return 2;
  }
  return 2;
}

// The folder that a pattern starts from.
std::string fixed_part(const std::string& glob) {
  std::size_t slash = glob.rfind('/', glob.find_first_of("*?["));
  return glob.substr(0, std::max<std::size_t>(slash, 1));
}

std::vector<std::string> real_globs(const std::vector<std::string>& globs) {
  std::vector<std::string> real;
  for (const std::string& glob : globs) {
    const std::string fixed = fixed_part(glob);
    real.push_back(real_path(fixed) + glob.substr(fixed.size()));
  }
  return real;
}

// `*` also matches a slash here, so more matches than would: the safe side.
bool matches(const std::vector<std::string>& globs, const std::string& path) {
  for (std::size_t end = path.size(); end != std::string::npos && end > 0;
       end = path.rfind('/', end - 1))
    for (const std::string& glob : globs)
      if (::fnmatch(glob.c_str(), path.substr(0, end).c_str(), 0) == 0) return true;
  return false;
}

// Of a whole file system that hides homes or /run we do not know what it shows.
int rank_everywhere(const Files& files) {
  if (files.reads != Reads::everything || !files.other_homes || !files.services) return 0;
  return rank(files.writes_everything ? Access::write : Access::read);
}

Why wider_path(const Reach& before, const std::string& path, Access wanted) {
  if (path.empty() || rank(wanted) == 0) return {};
  const std::string real = real_path(path);
  if (!real.empty() && before.allows(real, wanted)) return {};
  return (wanted == Access::write ? "writes " : "reads ") + (real.empty() ? path : real);
}

// ---- the parts of a policy ----
template <class T>
bool holds(const std::vector<T>& list, const T& value) {
  return std::ranges::find(list, value) != list.end();
}

// Which key asked for it does not matter: a flag of the operator's is as good as a file's.
bool holds(const std::vector<Grant>& list, const Grant& grant) {
  return std::ranges::any_of(
      list, [&](const Grant& one) { return one.path == grant.path && one.access == grant.access; });
}
bool holds(const std::vector<Credential>& list, const Credential& credential) {
  return std::ranges::any_of(list, [&](const Credential& one) {
    return one.source == credential.source && one.destination == credential.destination;
  });
}

Why wider_grants(const Files& before, const Files& after) {
  const Reach reach(before);
  for (const Grant& grant : after.grants) {
    if (grant.access == Access::hide || holds(before.grants, grant)) continue;
    if (grant.access == Access::protect) {
      if (reach.hides_near(real_path(grant.path))) return "shows " + grant.path;
      continue;
    }
    if (Why why = wider_path(reach, grant.path, grant.access)) return why;
  }
  for (const std::string& glob : after.protect_globs)
    if (!holds(before.protect_globs, glob) && reach.hides_near(real_path(fixed_part(glob))))
      return "shows " + glob;
  if (Why why = wider_path(reach, after.workdir, after.workdir_access)) return why;
  for (const std::string* folder : {&after.home_dir, &after.cache_dir, &after.tmp_dir})
    if (Why why = wider_path(reach, *folder, Access::write)) return why;
  return {};
}

// What is hidden or protected stays so.
Why lost_exceptions(const Files& before, const Files& after) {
  for (const Grant& grant : before.grants)
    if (rank(grant.access) == 0 || grant.access == Access::protect)
      if (!holds(after.grants, grant))
        return "does not " + std::string(name(grant.access)) + " " + grant.path;
  for (const std::string& glob : before.hide_globs)
    if (!holds(after.hide_globs, glob)) return "does not hide " + glob;
  for (const std::string& glob : before.protect_globs)
    if (!holds(after.protect_globs, glob)) return "does not protect " + glob;
  return {};
}

// Where something is hidden or protected, a project that is not trusted does not decide
// that the tree is shown a second time, as the home or /tmp or beside the workdir.
Why second_sight(const Files& before, const Files& after) {
  const Reach reach(before);
  auto again = [&](const std::string& path) -> Why {
    if (path.empty() || !reach.excepts_near(real_path(path))) return {};
    return "shows " + path + " at a second path, while a part of it is hidden or protected";
  };
  if (after.home_dir != before.home_dir)
    if (Why why = again(after.home_dir)) return why;
  if (after.tmp_dir != before.tmp_dir)
    if (Why why = again(after.tmp_dir)) return why;
  if (after.workdir_inside.empty()) return {};
  for (const Grant& grant : after.grants)
    if ((grant.access == Access::read || grant.access == Access::write) &&
        !holds(before.grants, grant))
      if (Why why = again(grant.path)) return why;
  if (after.cache_dir != before.cache_dir) return again(after.cache_dir);
  return {};
}

Why wider_files(const Files& before, const Files& after) {
  if (after.writes_everything && !before.writes_everything)
    return "reads and writes all your files";
  if (after.reads > before.reads)
    return after.reads == Reads::everything ? "reads all files" : "reads more of the system";
  if (after.toolchains && !before.toolchains && before.reads != Reads::everything)
    return "reads toolchains";
  if (after.other_homes && !before.other_homes) return "reads other people's homes";
  if (after.services && !before.services) return "reads /run";
  if (after.home == Home::caller && before.home != Home::caller) return "uses your home folder";
  if (!after.private_tmp && after.tmp_dir.empty() && before.private_tmp) return "shares /tmp";
  for (const Credential& credential : after.credentials)
    if (!holds(before.credentials, credential)) return "shows the credential " + credential.source;
  if (Why why = lost_exceptions(before, after)) return why;
  if (Why why = second_sight(before, after)) return why;
  return wider_grants(before, after);
}

int rank(Network network) {
  switch (network) {
    case Network::none:
      return 0;
    case Network::loopback:
      return 1;
    case Network::hosts:
      return 2;
    case Network::full:
      return 3;
  }
  return 3;
}

Why wider_hosts(const std::vector<std::string>& before, const std::vector<std::string>& after) {
  std::vector<NetRule> rules;
  for (const std::string& host : before)
    if (Result<NetRule> rule = parse_net_rule(host)) rules.push_back(*std::move(rule));
  for (const std::string& host : after) {
    if (holds(before, host)) continue;
    const Result<NetRule> rule = parse_net_rule(host);
    const bool covered =
        rule && std::ranges::any_of(rules, [&](const NetRule& wide) { return wide.covers(*rule); });
    if (!covered) return "network to " + host;
  }
  return {};
}

Why wider_network(const Policy& before, const Policy& after) {
  if (rank(after.network) > rank(before.network))
    return "network " + std::string(name(after.network)) + " instead of " +
           std::string(name(before.network));
  for (const Published& pair : after.publish)
    if (!holds(before.publish, pair))
      return "publishes a port on the host's " + std::to_string(pair.host_port);
  if (before.network != Network::hosts || after.network != Network::hosts) return {};
  for (const std::string& host : before.deny_hosts)
    if (!holds(after.deny_hosts, host)) return "does not deny " + host;
  return wider_hosts(before.hosts, after.hosts);
}

Why wider_environment(const Environment& before, const Environment& after) {
  if (after.everything && !before.everything) return "passes all variables";
  if (before.system_path_only && !after.system_path_only) return "keeps all of PATH";
  for (const std::string& variable : after.pass) {
    // A pattern is only as good as itself: `A*` is not within `AB*`.
    const bool passed = std::ranges::any_of(before.pass, [&](const std::string& pattern) {
      return pattern == variable || (variable.find('*') == std::string::npos &&
                                     ::fnmatch(pattern.c_str(), variable.c_str(), 0) == 0);
    });
    if (!before.everything && !passed) return "passes the variable " + variable;
  }
  // A value chooses what programs do (PATH, LD_PRELOAD, GIT_SSH_COMMAND, …).
  for (const auto& assignment : after.set)
    if (!holds(before.set, assignment)) return "sets the variable " + assignment.first;
  return {};
}

template <class T>
bool more(const std::optional<T>& before, const std::optional<T>& after) {
  return before && (!after || *after > *before);  // absent is unlimited
}

Why wider_limits(const Limits& before, const Limits& after) {
  if (more(before.memory_mb, after.memory_mb)) return "more memory";
  if (more(before.cpu_secs, after.cpu_secs)) return "more CPU time";
  if (more(before.procs, after.procs)) return "more processes";
  if (more(before.open_fds, after.open_fds)) return "more open files";
  if (more(before.file_sz_mb, after.file_sz_mb)) return "larger files";
  if (more(before.timeout, after.timeout)) return "more time";
  return {};
}

Why wider_promises(const Policy& before, const Policy& after) {
  // In order of strictness: off, automatic, on, full.
  if (after.mode < before.mode)
    return "mode " + std::string(name(after.mode)) + " instead of " +
           std::string(name(before.mode));
  for (Promise promise : after.accepted)
    if (!holds(before.accepted, promise))
      return "runs even where " + std::string(name(promise)) + " cannot be kept";
  if (after.syscalls == Syscalls::deny_list && before.syscalls == Syscalls::allow_list)
    return "more system calls";
  return {};
}

Why weaker_needs(const Policy& before, const Policy& after) {
  for (std::size_t i = 0; i < kPromiseCount; ++i)
    if (after.needs[i] < before.needs[i])
      return "runs even where " + std::string(name(static_cast<Promise>(i))) + " cannot be kept";
  return {};
}

// A field added to a policy must be judged above. These stop compiling until
// someone has looked.
[[maybe_unused]] void all_fields_are_known(const Policy& policy) {
  [[maybe_unused]] const auto& [profile, mode, needs, accepted, files, network, hosts, deny_hosts,
                                publish, environment, limits, syscalls] = policy;
  [[maybe_unused]] const auto& [reads, writes_everything, toolchains, other_homes, services, grants,
                                hide_globs, protect_globs, workdir, workdir_access, workdir_inside,
                                start_in, home, home_dir, home_inside, cache_dir, private_tmp,
                                tmp_dir, credentials] = files;
  [[maybe_unused]] const auto& [everything, pass, set, system_path_only] = environment;
  [[maybe_unused]] const auto& [memory, cpu, cpu_renews, procs, fds, file_size, timeout] = limits;
}

}  // namespace

Reach::Reach(const Files& files)
    : hide_(real_globs(files.hide_globs)),
      protect_(real_globs(files.protect_globs)),
      everywhere_(rank_everywhere(files)) {
  // One that is not granted is not hidden either: a grant may name it.
  if (files.workdir_access != Access::hide) add(files.workdir, files.workdir_access);
  for (const std::string& folder : {files.home_dir, files.cache_dir, files.tmp_dir})
    add(folder, Access::write);
  for (const Grant& grant : files.grants) {
    // Protecting takes writing away from what is granted, and grants nothing.
    if (grant.access == Access::protect)
      protected_.push_back(real_path(grant.path));
    else
      add(grant.path, grant.access);
  }
}

void Reach::add(const std::string& path, Access access) {
  if (!path.empty()) trees_.push_back({real_path(path), rank(access)});
}

// The most specific tree decides; of two for the same path, the stricter.
int Reach::at(const std::string& path) const {
  const Tree* nearest = nullptr;
  for (const Tree& tree : trees_) {
    if (!is_in(path, tree.path)) continue;
    const bool closer = nearest == nullptr || tree.path.size() > nearest->path.size() ||
                        (tree.path.size() == nearest->path.size() && tree.rank < nearest->rank);
    if (closer) nearest = &tree;
  }
  int found = nearest != nullptr ? nearest->rank : everywhere_;
  if (matches(hide_, path)) found = 0;
  const bool is_protected =
      std::ranges::any_of(protected_, [&](const std::string& tree) { return is_in(path, tree); });
  if (is_protected || matches(protect_, path)) found = std::min(found, 1);
  return found;
}

bool Reach::allows(const std::string& path, Access access) const {
  return at(path) >= rank(access);
}

bool Reach::hides_near(const std::string& path) const {
  return !hide_.empty() || std::ranges::any_of(trees_, [&](const Tree& tree) {
    return tree.rank == 0 && (is_in(path, tree.path) || is_in(tree.path, path));
  });
}

bool Reach::excepts_near(const std::string& path) const {
  return hides_near(path) || !protect_.empty() ||
         std::ranges::any_of(protected_, [&](const std::string& tree) {
           return is_in(path, tree) || is_in(tree, path);
         });
}

std::optional<std::string> widening(const Policy& before, const Policy& after) {
  if (before.mode == Mode::off) return {};  // nothing is wider than no sandbox
  if (Why why = wider_promises(before, after)) return why;
  if (Why why = wider_files(before.files, after.files)) return why;
  if (Why why = wider_network(before, after)) return why;
  if (Why why = wider_environment(before.environment, after.environment)) return why;
  if (Why why = wider_limits(before.limits, after.limits)) return why;
  return weaker_needs(before, after);  // last: what it allows says more to a person
}

}  // namespace belljar
