// seccomp: which system calls the guest may make, and with which arguments.
//
// Defends against: the kernel surface that ordinary programs do not need
// (mount, ptrace, bpf, io_uring, keyrings, new namespaces, ...), set-id bits in
// a mode, terminal injection, and, with no network, every socket but AF_UNIX.
// Does not do: anything by path or address, since a pointer can change after
// the filter has looked. Needs Linux 4.14 (KILL_PROCESS).
//
// The filters are compiled when belljar is built (seccomp_compile.cc), from the
// tables in syscall_groups.h and syscall_arguments.h; at run time one is chosen
// and loaded.
#pragma once

#include <linux/filter.h>

#include <optional>

#include "base/result.h"
#include "belljar/policy.h"

namespace belljar {
class Child;
}

namespace belljar::seccomp {

struct Support {
  bool filters = false;
};

// What other layers leave to this one.
struct Extra {
  // Memory limits without a cgroup: memfds and shared mappings would escape the count.
  bool no_memfd = false;
  // Processes of this jar join others, whose own filter then comes on top of this one: so it
  // refuses only what all of them do, and not setns.
  bool joins = false;
  // There is no pid namespace: the guest can name init, the supervisor and the caller's processes.
  bool hosts_pids = false;
};

struct Plan {
  sock_fprog filter{};  // compiled into the program, so nobody owns it
  // No truncate(2): by /proc/self/fd it would empty a file that was given only to be read, and
  // Landlock knows of it from Linux 6.2 on. Programs empty what they have opened by ftruncate(2).
  bool no_truncate = false;
  bool hosts_pids = false;  // see Extra
};

Support probe();
Result<std::optional<Plan>> resolve(const Policy& policy, const Support& host, Extra extra);
void apply(const Plan& plan, const Child& child) noexcept;

}  // namespace belljar::seccomp
