// Plan: a policy resolved for this host, with every path opened, every filter
// chosen and every allocation made. The child only walks it. `belljar explain`
// prints it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "belljar/outcome.h"
#include "layers/cgroup.h"
#include "layers/identity.h"
#include "layers/landlock.h"
#include "layers/layout.h"
#include "layers/net.h"
#include "layers/rlimit.h"
#include "layers/seccomp.h"
#include "layers/view.h"

namespace belljar {

// What this machine can enforce.
struct Host {
  identity::Support identity;
  view::Support view;
  net::Support net;
  landlock::Support landlock;
  seccomp::Support seccomp;
  cgroup::Support cgroup;
  bool measured = false;  // found by trying; else assumed, and the launch will tell
};

// Tries everything: some milliseconds.
Host probe_host();
// Supposes that namespaces and seccomp work, so that a launch need not wait for
// probes: where that is wrong the launch fails, and the caller probes then.
Host assume_host();

// What of the caller's surroundings a plan depends on.
struct Caller {
  std::string home;
  std::string cwd;
  std::vector<std::string> environment;  // NAME=value
};

struct Plan {
  Policy policy;
  Layout layout;
  std::optional<identity::Plan> identity;
  bool pid_namespace = false;
  std::optional<view::Plan> view;
  std::optional<net::Plan> net;
  rlimit::Plan rlimit;
  std::optional<cgroup::Plan> cgroup;
  bool watchdog = false;  // the supervisor sums memory and CPU, where no cgroup does
  std::optional<landlock::Plan> landlock;
  std::optional<seccomp::Plan> seccomp;
  std::vector<std::string> environment;
  std::vector<Kept> kept;
  std::vector<Loss> losses;
  std::vector<std::string> warnings;

  std::uint64_t clone_flags() const;
};

// Refuses when a required promise cannot be kept and its loss was not accepted.
Result<Plan> resolve(const Policy& policy, const Host& host, const Caller& caller);

}  // namespace belljar
