// seccomp: which system calls the guest may make, and with which arguments.
//
// Defends against: the kernel surface that ordinary programs do not need
// (mount, ptrace, bpf, io_uring, keyrings, new namespaces, ...), set-id bits in
// a mode, terminal injection, and, with no network, every socket but AF_UNIX.
// Does not do: anything by path or address, since a pointer can change after
// the filter has looked. Needs Linux 4.14 (KILL_PROCESS).
//
// The filters are compiled by libseccomp when belljar is built, from the tables
// in syscall_groups.h; at run time one is chosen and loaded.
#pragma once

#include <linux/filter.h>

#include <array>
#include <cstddef>
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
  bool no_memfd = false;  // memory limits without a cgroup: a memfd would escape the count
};

struct Plan {
  // Two at most, loaded in order: an allow-list cannot also refuse an argument
  // of a call it allows (libseccomp loses the refusal), so that is a second one.
  std::array<sock_fprog, 2> filters{};
  std::size_t count = 0;
};

Support probe();
Result<std::optional<Plan>> resolve(const Policy& policy, const Support& host, Extra extra);
void apply(const Plan& plan, const Child& child) noexcept;

}  // namespace belljar::seccomp
