// kill_within: ends everything in a jar's pid namespace but its init, from within.
//
// A jar ends when its init does, and for that init must run. Where something keeps it from
// running, as a CPU that is kept busy does, everything in the jar would live on. So a process
// is born in the jar that sends one SIGKILL to everybody there: the kernel lets nobody escape it
// by a fork. It also lets init use every CPU again.
//
// The process has capabilities in the jar's user namespace, so no guest can trace it. Where the
// guest has the caller's uid it can still stop or kill it. Then it is tried again; what keeps
// the promise in this case is that no guest can touch init (seccomp).
//
// Needs Linux 5.8, and is not used where the jar has no pid namespace.
#pragma once

namespace belljar::launcher {

enum class Namespaces { pid, pid_and_user };

// `init_pidfd`: of the jar's init, which has not ended.
void kill_within(int init_pidfd, Namespaces namespaces);

}  // namespace belljar::launcher
