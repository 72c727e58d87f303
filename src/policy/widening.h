// Whether one policy allows what another does not. The rule about projects that
// are not trusted rests on this and not on a list of harmless values: what counts
// is what would be allowed with the project's wish against without it.
#pragma once

#include <optional>
#include <string>

#include "belljar/policy.h"

namespace belljar {

// What `after` allows beyond `before`, in words for people ("network full instead
// of none"); nullopt when nothing is. In doubt it does. Paths are compared as they
// stand on this host, symlinks and `..` resolved; what a guest sees at which path
// is not compared.
std::optional<std::string> widening(const Policy& before, const Policy& after);

}  // namespace belljar
