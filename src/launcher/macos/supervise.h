// Waiting for a guest on macOS with a kqueue: its end, its output, its time and what it uses.
//
// Compiled for macOS only; it has not run (docs/macos.md).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/fd.h"
#include "belljar/outcome.h"

namespace belljar::macos {

struct Watched {
  pid_t pid = -1;
  Fd input, output, errors;  // our ends; those that are not there are not ours to read
  std::string text;          // for the input
  std::size_t max_output = 0;
  std::optional<std::chrono::milliseconds> timeout;
  std::optional<std::uint64_t> memory_mb;
  std::optional<std::uint64_t> cpu_secs;
};

// Until the guest has ended. Then its process group is ended too.
Result<Outcome> supervise(Watched watched);

}  // namespace belljar::macos
