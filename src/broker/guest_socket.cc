#include "broker/guest_socket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/file.h"

namespace belljar::broker {
namespace {

#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL  // Linux 6.9
#endif

// The process that a thread belongs to.
pid_t process_of(pid_t thread) {
  const std::string status = read_text("/proc/" + std::to_string(thread) + "/status").value_or("");
  const std::size_t at = status.find("\nTgid:");
  return at == status.npos ? -1
                           : static_cast<pid_t>(std::strtol(status.c_str() + at + 6, nullptr, 10));
}

}  // namespace

GuestSocket look_at(pid_t thread, int number, Closer& closer) {
  Fd process(static_cast<int>(::syscall(SYS_pidfd_open, thread, PIDFD_THREAD)));
  if (!process) process = Fd(static_cast<int>(::syscall(SYS_pidfd_open, process_of(thread), 0)));
  Fd copy(static_cast<int>(::syscall(SYS_pidfd_getfd, process.get(), number, 0)));
  GuestSocket socket{.fd = {closer, std::move(copy)}};
  socklen_t size = sizeof(int);
  const int fd = socket.fd.get();
  if (fd < 0 || ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &socket.type, &size) < 0 ||
      ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &socket.family, &size) < 0)
    return socket;
  socket.patient = (::fcntl(fd, F_GETFL) & O_NONBLOCK) == 0;
  const bool is_inet = socket.family == AF_INET || socket.family == AF_INET6;
  if (is_inet && socket.type == SOCK_DGRAM) socket.fd.close_here();  // datagrams do not linger
  return socket;
}

int connect_for(const GuestSocket& socket, const Endpoint& detour) {
  SocketAddress address = detour.to_socket_address();
  if (socket.family == AF_INET6 && detour.address.is_v4()) {
    sockaddr_in6 mapped{};
    mapped.sin6_family = AF_INET6;
    mapped.sin6_port = htons(detour.port);
    std::ranges::copy(detour.address.bytes(), std::begin(mapped.sin6_addr.s6_addr));
    std::memcpy(&address.storage, &mapped, sizeof mapped);
    address.size = sizeof mapped;
  }
  return ::connect(socket.fd.get(), address.get(), address.size) < 0 ? errno : 0;
}

}  // namespace belljar::broker
