// Beneath: where a jar is born that processes of another jar may join.
//
// setns asks for CAP_SYS_ADMIN in the user namespace that is entered. A process that has no
// capability at all has that one where its user namespace is the parent of the other and its
// uid owns it; and it enters only pid namespaces that lie below its own. So a joinable jar is
// born below the jar of who is to join it, and nobody is given anything for it. The price: it
// ends with the init above it, whose end in turn waits until we have seen all ends below.
// Needs Linux 5.8 (setns by pidfd).
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>

#include "base/clone.h"

namespace belljar::launcher {

struct Beneath {
  int init_pidfd = -1;                  // of the jar above
  bool user_namespace = false;          // it has one, which becomes the parent of the new one's
  std::optional<uid_t> owner;           // as root: who is to own the new user namespace
  std::shared_ptr<const void> above{};  // that jar: kept until those beneath have ended
};

// As clone_sharing_memory, with CLONE_PIDFD among the flags; the new process is a child of the
// caller's as always. Its pid is the caller's number for it.
Result<int> clone_beneath(const Beneath& beneath, const clone_args& args, CloneFunction function,
                          void* argument);

}  // namespace belljar::launcher
