// Descriptors that travel with bytes over a unix socket.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "base/fd.h"

namespace belljar {

inline constexpr std::size_t kMaxPassed = 8;  // descriptors in one message

// One message of `bytes`, which must not be empty, with `fds`. Allocates nothing, for a child
// between clone and exec. False: errno says why not.
bool send_with_fds(int socket_fd, std::string_view bytes, std::span<const int> fds,
                   int flags = 0) noexcept;

// From now on nobody can send descriptors to this socket: they get EPERM. A receiver that does not
// ask for descriptors would close them, and the last close of a socket can wait as long as its
// sender likes (SO_LINGER). A second layer, for sockets that no guest holds; before Linux 6.16 it
// does nothing.
void refuse_descriptors(int socket_fd);

struct Received {
  std::size_t size = 0;  // 0: the other side has hung up
  std::vector<Fd> fds;
};

// What is there, as far as `into` has room: EMSGSIZE if that is less than was sent.
Result<Received> receive_with_fds(int socket_fd, std::span<char> into, int flags = 0);

}  // namespace belljar
