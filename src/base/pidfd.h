// What a pidfd says of its process.
#pragma once

#include <sys/types.h>

#include "base/result.h"

namespace belljar {

struct Pids {
  pid_t here = 0;    // as this process numbers it
  pid_t inside = 0;  // as its own pid namespace does
};

// An error once the process has been reaped. Needs Linux 5.5 and a /proc of this process's own
// pid namespace.
Result<Pids> pids_of(int pidfd);

}  // namespace belljar
