// rlimit: caps that the kernel keeps per process (and, for processes, per user).
//
// Defends against: a runaway allocation, a file that fills the disk, too many
// descriptors or processes, a busy loop, a real-time priority, and that a crash
// inside runs the host's program for core dumps. Does not do: the sum over a jar,
// which is the cgroup's work, or the watchdog's. Memory is RLIMIT_DATA and not
// RLIMIT_AS, which stops Java, Go and Node's WebAssembly at any sensible size.
#pragma once

#include <sys/resource.h>

#include <vector>

#include "belljar/policy.h"

namespace belljar {
class Child;
}

namespace belljar::rlimit {

// Who hears of a crash inside, by what kernel.core_pattern says.
enum class CoreDumps {
  nobody,
  program,  // a program of the host's, and this caller cannot set the limit that stops it
  service,  // a socket of the host's (Linux 6.16), which no limit stops; it is sent no memory
};

struct Support {
  CoreDumps core_dumps = CoreDumps::nobody;
};

struct Limit {
  __rlimit_resource resource;
  rlimit64 value;
};

struct Plan {
  std::vector<Limit> limits;
};

Support probe();
// `own_count`: the jar's processes are counted apart from the caller's others.
Plan resolve(const Policy& policy, bool own_count);
void apply(const Plan& plan, const Child& child) noexcept;

}  // namespace belljar::rlimit
