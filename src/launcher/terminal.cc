#include "launcher/terminal.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <string>

namespace belljar::launcher {
namespace {

// Asked of any other terminal, and of what is none, this fails.
bool is_terminal_of_this_session(int fd) { return ::tcgetpgrp(fd) >= 0; }

}  // namespace

Result<GuestStdio> GuestStdio::of(const Command& command) {
  GuestStdio stdio;
  std::ranges::copy(command.stdio_fds, stdio.fds_.begin());
  if (command.control_fd >= 0) stdio.fds_[stdio.count_++] = command.control_fd;
  if (command.has_terminal || command.owns_terminal) return stdio;
  for (std::size_t i = 0; i < 3; ++i) {
    int& fd = stdio.fds_[i];
    if (!is_terminal_of_this_session(fd)) continue;
    if (i == 0) {
      stdio.own_[i] = TRY(open_path("/dev/null", O_RDONLY));
    } else {
      const std::string again = "/proc/self/fd/" + std::to_string(fd);
      stdio.own_[i] = Fd(::open(again.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC));
      if (!stdio.own_[i]) continue;  // after su: it belongs to somebody else
    }
    fd = stdio.own_[i].get();
  }
  return stdio;
}

Status GuestStdio::refuse_datagrams() const {
  for (const int fd : fds()) {
    int domain = 0;
    int type = 0;
    socklen_t size = sizeof(int);
    if (::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) < 0 || domain != AF_UNIX) continue;
    if (::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) < 0 || type != SOCK_DGRAM) continue;
    return fail("descriptor " + std::to_string(fd) +
                    " is a Unix datagram socket, which could call any service here",
                0, "pass the data through a pipe: … | belljar exec … | …");
  }
  return {};
}

}  // namespace belljar::launcher
