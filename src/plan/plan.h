// Plan: a policy resolved for this host, with every path opened, every filter
// chosen and every allocation made. The child only walks it. `belljar explain`
// prints it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "belljar/caller.h"
#include "belljar/outcome.h"
#include "broker/rules.h"
#include "layers/cgroup.h"
#include "layers/identity.h"
#include "layers/landlock.h"
#include "layers/layout.h"
#include "layers/net.h"
#include "layers/notify.h"
#include "layers/rlimit.h"
#include "layers/seatbelt.h"
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
  notify::Support notify;
  cgroup::Support cgroup;
  rlimit::Support rlimit = {};
  bool measured = false;  // found by trying; else assumed, and the launch will tell
};

// How processes come into a jar.
enum class Role {
  guest,     // its init spawns them all
  joinable,  // forks of a process in another jar may join it too
  warm,      // it is that other jar, and runs nobody's code but our own
};

// Tries everything: some milliseconds.
Host probe_host(const Caller& caller);
// Supposes that namespaces and seccomp work, so that a launch need not wait for
// probes: where that is wrong the launch fails, and the caller probes then.
Host assume_host();

struct Plan {
  Policy policy;
  Role role = Role::guest;
  Layout layout;
  std::optional<identity::Plan> identity;
  bool pid_namespace = false;
  std::optional<view::Plan> view;
  std::optional<net::Plan> net;
  rlimit::Plan rlimit;
  std::optional<cgroup::Plan> cgroup;
  bool outside_proc = false;  // the guest sees the host's /proc
  bool watchdog = false;      // the supervisor sums memory and CPU, where no cgroup does
  bool no_memfd = false;      // shared memory that the watchdog could not count is refused
  std::optional<landlock::Plan> landlock;
  std::optional<seccomp::Plan> seccomp;
  std::optional<notify::Plan> notify;
  std::optional<broker::Rules> rules;      // with notify of the network: what the broker goes by
  std::optional<seatbelt::Plan> seatbelt;  // for a Mac: then it is the only layer beside env
  std::vector<std::string> environment;
  std::vector<Kept> kept;
  std::vector<Loss> losses;
  std::vector<std::string> warnings;

  std::uint64_t clone_flags() const;
  // Whether the broker answers its calls, or the supervisor makes its connects.
  bool has_broker() const { return notify && notify->calls == notify::Calls::network; }
  bool makes_connects() const { return notify && notify->calls == notify::Calls::connects; }
  // Whether the policy shows the sockets of the host's services.
  bool sockets_are_granted() const {
    return layout.whole_root && (layout.root_writable || policy.files.services);
  }
};

enum class Purpose {
  launch,   // may make folders that are to be writable
  explain,  // changes nothing
};

// A plan for whatever this host can do; its losses say what that is not.
Result<Plan> resolve(const Policy& policy, const Host& host, const Caller& caller,
                     Purpose purpose = Purpose::launch, Role role = Role::guest);

// An error when a required promise is broken and its loss was not accepted by
// name (in mode `on`: when anything at all is lost).
Status refuse_lost_promises(const Plan& plan);

}  // namespace belljar
