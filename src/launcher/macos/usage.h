// What the processes of a guest use, and how many the caller has.
//
// Compiled for macOS only; it has not run (docs/macos.md).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>

namespace belljar::macos {

struct Usage {
  std::uint64_t memory = 0;  // bytes: the footprint that Activity Monitor shows
  std::chrono::nanoseconds cpu{};
};

// Of the living processes of the group. One that has left it is not seen.
Usage usage_of_group(pid_t group);

std::uint64_t processes_of_this_user();

}  // namespace belljar::macos
