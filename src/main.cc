#include <fcntl.h>
#include <unistd.h>

#include "cli/cli.h"

namespace {

// A caller may have closed one (`<&-`). The next descriptor opened would take its
// number, and be handed to the guest as its own.
bool fill_stdio() {
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    // NOLINTNEXTLINE(android-cloexec-open): it stays, for the guest too
    if (::fcntl(fd, F_GETFD) < 0 && ::open("/dev/null", O_RDWR) != fd) return false;
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (!fill_stdio()) return belljar::cli::kFailure;
  return belljar::cli::main({argv + 1, argv + argc});
}
