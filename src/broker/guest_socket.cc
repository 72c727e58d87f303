#include "broker/guest_socket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "broker/guest_thread.h"

namespace belljar::broker {
GuestSocket look_at(pid_t thread, int number, Closer& closer) {
  GuestSocket socket{.fd = {closer, take_descriptor(thread, number)}};
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
