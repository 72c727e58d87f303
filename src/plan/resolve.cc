#include <sched.h>

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

Result<Plan> resolve(const Policy& policy, const Host& host, const Caller& caller,
                     Purpose purpose) {
  TRY(validate(policy));
  Plan plan;
  plan.policy = policy;
  plan.identity = TRY(identity::resolve(host.identity));
  // Namespaces take either root or a user namespace to make them in.
  const bool namespaces = plan.identity.has_value();
  const bool view = namespaces && host.view.mounts;
  plan.pid_namespace = view;  // without its own /proc it would be half a namespace
  plan.outside_proc = view ? !host.view.proc : policy.need(Promise::processes) != Need::required;

  plan.layout = TRY(make_layout(policy, caller,
                                {.root = host.identity.root,
                                 .view = view,
                                 .outside_proc = plan.outside_proc,
                                 .show_as_owned = host.view.idmap,
                                 .make_folders = purpose == Purpose::launch}));
  if (view) plan.view = view::resolve(plan.layout, host.view, policy.limits.memory_mb.value_or(0));
  if (namespaces) plan.net = net::resolve(policy, host.net);
  plan.rlimit = rlimit::resolve(policy, namespaces);
  plan.cgroup = cgroup::resolve(policy, host.cgroup);
  plan.watchdog = !plan.cgroup && view && plan.layout.own_dev &&
                  (policy.limits.memory_mb || policy.limits.cpu_secs);
  plan.landlock = landlock::resolve(policy, plan.layout, host.landlock, view);
  plan.no_memfd =
      policy.limits.memory_mb && !plan.cgroup && policy.need(Promise::limits) == Need::required;
  plan.seccomp = TRY(seccomp::resolve(policy, host.seccomp, {.no_memfd = plan.no_memfd}));
  if (plan.net) plan.notify = notify::resolve(policy, host.notify);
  if (policy.network == Network::hosts) plan.rules = TRY(broker::Rules::compile(policy));
  plan.environment = env::resolve(policy, caller.environment,
                                  {plan.layout.home, plan.layout.tmp, plan.layout.cache});
  plan.warnings = plan.layout.warnings;
  judge_promises(plan, host);
  return plan;
}

}  // namespace belljar
