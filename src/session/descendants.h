// The processes that a guest process has started, as the host sees them.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>

namespace belljar::session {

// Clock ticks since the machine was started, in which the kernel dates processes.
std::uint64_t process_clock();

// SIGKILL to what descends from the child of `init` that is called `inside` in its own pid
// namespace, and was started at `since` or later, and to orphans of its group. The process
// itself lives, and so does what was started before, with its own children.
void kill_descendants(pid_t init, pid_t inside, std::uint64_t since);

// SIGKILL to that child, and to nothing that it has started.
void kill_only(pid_t init, pid_t inside);

}  // namespace belljar::session
