// Landlock: the kernel denies file access outside the listed trees, to root as
// well, and the process cannot undo it.
//
// Behind the view it is the second lock on the same doors; without a view it is
// the first. From ABI 6 on it also keeps signals and abstract unix sockets
// inside. Does not do: take a part of a granted tree away again; cover chmod,
// chown, utime, setxattr or stat. Needs Linux 5.13; each ABI adds rights.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "layers/layout.h"

namespace belljar {
class Child;
}

namespace belljar::landlock {

struct Support {
  int abi = 0;  // 0: not built in, or disabled with lsm=
};

struct Rule {
  int fd = -1;       // a place of the layout, which owns it
  std::string path;  // or a path inside the view, opened by the child
  std::uint64_t access = 0;
};

struct Plan {
  int abi = 0;
  std::uint64_t handled_fs = 0;
  std::uint64_t handled_net = 0;
  std::uint64_t scoped = 0;
  std::vector<Rule> rules;
};

Support probe();
// `view`: the guest has a root of its own, whose private parts get rules too.
std::optional<Plan> resolve(const Policy& policy, const Layout& layout, const Support& host,
                            bool view);
// `terminal_fd`: the guest's own terminal, which it may open again by /dev/stderr
// and the like; or -1. Returns the ruleset, for processes that join the jar later.
Fd apply(const Plan& plan, int terminal_fd, const Child& child) noexcept;

}  // namespace belljar::landlock
