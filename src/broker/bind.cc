#include "broker/bind.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

namespace belljar::broker {

int bind_anywhere(int fd, const Endpoint& endpoint) {
  const int on = 1;
  const bool v4 = endpoint.address.is_v4();
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  ::setsockopt(fd, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_FREEBIND : IPV6_FREEBIND, &on,
               sizeof on);
  const SocketAddress address = endpoint.to_socket_address();
  return ::bind(fd, address.get(), address.size) < 0 ? errno : 0;
}

std::optional<Endpoint> bind_to_some_port(int fd, bool v4) {
  const Endpoint any{v4 ? IpAddress::v4(127, 0, 0, 1) : IpAddress(in6addr_loopback), 0};
  if (bind_anywhere(fd, any) != 0) return std::nullopt;
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size) < 0) return std::nullopt;
  return Endpoint::from(storage, size);
}

Endpoint outside_of(const Endpoint& endpoint, Way way) {
  if (way != Way::localhost || !endpoint.address.is_v4()) return endpoint;
  return {IpAddress::v4(127, 0, 0, 1), endpoint.port};
}

}  // namespace belljar::broker
