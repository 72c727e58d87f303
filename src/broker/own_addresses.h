// The addresses of this host, whatever its interfaces are. nullopt: it does not say.
#pragma once

#include <optional>
#include <vector>

#include "base/address.h"

namespace belljar::broker {

std::optional<std::vector<IpAddress>> own_addresses();

}  // namespace belljar::broker
