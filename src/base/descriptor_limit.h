// The soft limit on open files of this process. Shells set it to 1,024, for programs that use
// select(). Sessions and connections need more, and nothing here uses select().
//
// Guests do not get the raised limit: it might break such a program, or make one that closes every
// possible descriptor slow. They start with the limit that this process had, or their policy's.
#pragma once

#include <cstdint>
#include <optional>

namespace belljar {

// Raises it to the hard limit. If that fails, the limit stays as it is. May be called again.
void raise_descriptor_limit();

// What it was before, if it was raised.
std::optional<std::uint64_t> descriptor_limit_before();

}  // namespace belljar
