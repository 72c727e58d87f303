// net: a network namespace of the jar's own.
//
// Defends against: reaching any address when the policy says none or loopback,
// the host's own 127.0.0.1 and its abstract unix sockets included. Does not do:
// network by name, which the broker adds. Needs Linux 3.0 and root or a user
// namespace.
#pragma once

#include <optional>

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
};

Support probe();
std::optional<Plan> resolve(const Policy& policy, const Support& host);
void apply(const Plan& plan, const Child& child) noexcept;

}  // namespace belljar::net
