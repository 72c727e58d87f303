#include "plan/plan.h"

namespace belljar {

Host probe_host(const Caller& caller) {
  return {.identity = identity::probe(),
          .view = view::probe(caller.cwd.empty() ? "/" : caller.cwd),
          .net = net::probe(),
          .landlock = landlock::probe(),
          .seccomp = seccomp::probe(),
          .notify = notify::probe(),
          .cgroup = cgroup::probe(),
          .rlimit = rlimit::probe(),
          .measured = true};
}

Host assume_host() {
  return {.identity = identity::assume(),
          .view = {},
          .net = {},
          .landlock = landlock::probe(),  // one system call
          .seccomp = {.filters = true},
          .notify = {},
          .cgroup = cgroup::probe(),
          .rlimit = rlimit::probe(),
          .measured = false};
}

}  // namespace belljar
