#include <sched.h>

#include "base/uapi.h"
#include "layers/env.h"
#include "plan/layout.h"
#include "plan/plan.h"
#include "plan/promises.h"
#include "policy/validate.h"

namespace belljar {

std::uint64_t Plan::clone_flags() const {
  std::uint64_t flags = 0;
  if (identity && identity->user_namespace) flags |= CLONE_NEWUSER;
  if (view) flags |= CLONE_NEWNS;
  if (pid_namespace) flags |= CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
  if (net) flags |= CLONE_NEWNET;
  return flags;
}

namespace {

// A process that joins has a Landlock domain of its own, and scopes would keep it and those
// that init spawned from signalling one another and from meeting at abstract sockets. What the
// scopes keep inside the jar, its namespaces do.
void leave_to_namespaces(Plan& plan) {
  if (!plan.landlock) return;
  if (plan.pid_namespace && !plan.outside_proc)
    plan.landlock->scoped &= ~std::uint64_t{LANDLOCK_SCOPE_SIGNAL};
  if (plan.net) plan.landlock->scoped &= ~std::uint64_t{LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET};
}

}  // namespace

Result<Plan> resolve(const Policy& policy, const Host& host, const Caller& caller, Purpose purpose,
                     Role role) {
  TRY(validate(policy));
  const bool warm = role == Role::warm;
  Plan plan;
  plan.policy = policy;
  plan.role = role;
  plan.identity = TRY(identity::resolve(host.identity));
  if (plan.identity && warm) identity::stand_above_other_jars(*plan.identity);
  // Namespaces take either root or a user namespace to make them in.
  const bool namespaces = plan.identity.has_value();
  const bool view = namespaces && host.view.mounts;
  plan.pid_namespace = view;  // without its own /proc it would be half a namespace
  plan.outside_proc = view ? !host.view.proc : policy.need(Promise::processes) != Need::required;

  plan.cgroup = cgroup::resolve(policy, host.cgroup);
  plan.no_memfd =
      policy.limits.memory_mb && !plan.cgroup && policy.need(Promise::limits) == Need::required;
  plan.layout = TRY(make_layout(policy, caller,
                                {.root = host.identity.root,
                                 .view = view,
                                 .outside_proc = plan.outside_proc,
                                 .show_as_owned = host.view.idmap,
                                 .no_shared_zero = plan.no_memfd,
                                 .make_folders = purpose == Purpose::launch}));
  if (view) plan.view = view::resolve(plan.layout, host.view, policy.limits.memory_mb.value_or(0));
  if (namespaces) plan.net = net::resolve(policy, host.net);
  plan.rlimit = rlimit::resolve(policy, namespaces);
  plan.watchdog = !plan.cgroup && view && plan.layout.own_dev &&
                  (policy.limits.memory_mb || policy.limits.cpu_secs);
  // Who joins a jar brings its domain along.
  if (!warm) plan.landlock = landlock::resolve(policy, plan.layout, host.landlock, view);
  if (role == Role::joinable) leave_to_namespaces(plan);
  plan.seccomp = TRY(seccomp::resolve(
      policy, host.seccomp,
      {.no_memfd = plan.no_memfd, .joins = warm, .hosts_pids = !plan.pid_namespace}));
  if (plan.net) plan.notify = notify::resolve(policy, host.notify);
  // As another user, or with more rights than the guest, we would reach what it could not.
  if (!view && !host.identity.root && plan.seccomp && !plan.sockets_are_granted())
    plan.notify = notify::resolve_connects(host.notify);
  if (policy.network == Network::hosts) plan.rules = TRY(broker::Rules::compile(policy));
  plan.environment = env::resolve(policy, caller.environment,
                                  {plan.layout.home, plan.layout.tmp, plan.layout.cache});
  plan.warnings = plan.layout.warnings;
  if (policy.network != Network::full && plan.layout.root_writable)
    plan.warnings.emplace_back(
        "services of this machine can still be reached by their sockets in /tmp and /run, since "
        "all "
        "files are granted; --profile=developer or --deny-write would give it a /tmp of its own");
  judge_promises(plan, host);
  return plan;
}

}  // namespace belljar
