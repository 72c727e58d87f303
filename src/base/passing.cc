#include "base/passing.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/syscall.h"
#include "base/uapi.h"

namespace belljar {
namespace {

constexpr std::size_t kRoom = CMSG_SPACE(kMaxPassed * sizeof(int));

}  // namespace

bool send_with_fds(int socket_fd, std::string_view bytes, std::span<const int> fds,
                   int flags) noexcept {
  if (fds.size() > kMaxPassed) {
    errno = EINVAL;
    return false;
  }
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[kRoom] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(rights), fds.data(), fds.size_bytes());
  }
  const ssize_t n = retry([&] { return ::sendmsg(socket_fd, &message, MSG_NOSIGNAL | flags); });
  if (n >= 0 && static_cast<std::size_t>(n) < bytes.size()) errno = EMSGSIZE;
  return n == std::ssize(bytes);
}

void refuse_descriptors(int socket_fd) {
  const int off = 0;
  (void)::setsockopt(socket_fd, SOL_SOCKET, SO_PASSRIGHTS, &off,
                     sizeof off);  // unknown before 6.16
}

Result<Received> receive_with_fds(int socket_fd, std::span<char> into, int flags) {
  iovec part{into.data(), into.size()};
  alignas(cmsghdr) char control[kRoom] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t n = retry([&] { return ::recvmsg(socket_fd, &message, MSG_CMSG_CLOEXEC | flags); });
  if (n < 0) return fail("receive", errno);
  Received received{.size = static_cast<std::size_t>(n), .fds = {}};
  for (cmsghdr* rights = CMSG_FIRSTHDR(&message); rights != nullptr;
       rights = CMSG_NXTHDR(&message, rights)) {
    if (rights->cmsg_level != SOL_SOCKET || rights->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = CMSG_LEN(0); at + sizeof(int) <= rights->cmsg_len; at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(rights) + (at - CMSG_LEN(0)), sizeof fd);
      received.fds.emplace_back(fd);
    }
  }
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) return fail("receive", EMSGSIZE);
  return received;
}

}  // namespace belljar
