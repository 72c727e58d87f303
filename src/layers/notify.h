// notify: calls of the guest's that wait for the supervisor's answer.
//
// With a network by name: connects and addressed sends. That defends against nothing by
// itself: a call that was let through can be aimed elsewhere before the kernel reads it
// again. What it reaches then is still the jar's own network namespace, where only the
// broker's listeners are. This layer tells the broker which to make, and gives a denied call
// its error at once.
//
// Where no view hides the host's sockets: connects alone, and none is let through
// (broker/connects.h). A Unix datagram carries its address in each send, so such sockets are
// refused; streams and sequenced packets ignore an address. Needs Linux 5.6 (pidfd_getfd).
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
  // Whether a supervisor without privilege may look into its guests (Yama may forbid it).
  bool looks_inside = true;
};

enum class Calls {
  network,   // for the broker, which lets them go on
  connects,  // all that connect; they are made for the guest
};

struct Plan {
  Calls calls = Calls::network;
};

Support probe();
std::optional<Plan> resolve(const Policy& policy, const Support& host);
// Where there is no view: what keeps the guest from sockets that it was not granted.
std::optional<Plan> resolve_connects(const Support& host);

// What is loaded, for a process that joins the jar.
sock_fprog filter(const Plan& plan);

// The descriptor on which the calls arrive; closed at exec.
[[nodiscard]] int apply(const Plan& plan, const Child& child) noexcept;

}  // namespace belljar::notify
