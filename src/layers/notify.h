// notify: the guest's connects and addressed sends ask the broker first.
//
// Defends against nothing by itself: a call that was let through can be aimed elsewhere
// before the kernel reads it again. What it reaches then is still the jar's own network
// namespace, where only the broker's listeners are. This layer tells the broker which to
// make, and gives a denied call its error at once. Needs Linux 5.6 (pidfd_getfd).
#pragma once

#include <linux/filter.h>

#include <optional>

#include "belljar/policy.h"

namespace belljar {
class Child;
}

namespace belljar::notify {

struct Support {
  bool notifications = true;
};

struct Plan {};

Support probe();
std::optional<Plan> resolve(const Policy& policy, const Support& host);

// What is loaded, for a process that joins the jar.
sock_fprog filter();

// The descriptor on which the calls arrive; closed at exec.
[[nodiscard]] int apply(const Plan& plan, const Child& child) noexcept;

}  // namespace belljar::notify
