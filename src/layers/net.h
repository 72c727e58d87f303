// net: a network namespace of the jar's own.
//
// Defends against: reaching any address when the policy says none or loopback,
// the host's own 127.0.0.1 and its abstract unix sockets included. For a network by
// name it makes the place where the broker stands: it leads every address to the jar's
// own loopback and opens port 53 there. It also bounds what a TCP connection may keep in the
// kernel, where /proc/sys can be written. Needs Linux 3.0 and root or a user namespace.
#pragma once

#include <optional>

#include "base/fd.h"
#include "belljar/policy.h"

namespace belljar {
class Child;
}

namespace belljar::net {

struct Support {
  bool namespaces = true;
};

struct Plan {
  bool loopback_up = false;
  bool by_name = false;  // every address leads to the loopback, where the broker waits
};

// What the broker serves: sockets in the jar's namespace, as the child numbers them.
struct Doors {
  int dns_udp_fd = -1;
  int dns_tcp_fd = -1;
};

Support probe();
std::optional<Plan> resolve(const Policy& policy, const Support& host);
// Before the view, in which they cannot be written: the machine's settings, of which those of the
// network are the namespace's that the process is in when it opens one. Or nothing.
Fd open_settings(const Plan& plan) noexcept;
void apply(const Plan& plan, Fd settings, Doors& doors, const Child& child) noexcept;

}  // namespace belljar::net
