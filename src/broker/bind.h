// Where the broker stands inside for what is outside.
#pragma once

#include "base/address.h"
#include "broker/judge.h"

namespace belljar::broker {

// On an address that is nobody's, and that only a route makes the jar's. 0 or an errno.
int bind_anywhere(int fd, const Endpoint& endpoint);

// What is reached outside for it.
Endpoint outside_of(const Endpoint& endpoint, Way way);

}  // namespace belljar::broker
