// Starting a command on macOS: posix_spawn of sandbox-exec, which takes on the profile and
// becomes the command. Nothing of ours runs in between, so there is no code to keep safe there.
//
// Compiled for macOS only, by the check `macos` on other hosts; it has not run (docs/macos.md).
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"
#include "layers/seatbelt.h"

namespace belljar::macos {

struct Start {
  const seatbelt::Plan* plan = nullptr;
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
  std::string folder;  // where it starts; empty: the plan's workdir
  int in_fd = -1, out_fd = -1, err_fd = -1;
};

// The pid of the guest, which leads a session of its own: /dev/tty is not there, the terminal's
// signals do not come, and its process group has its number.
Result<pid_t> spawn(const Start& start);

}  // namespace belljar::macos
