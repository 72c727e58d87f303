#include "broker/sockets.h"

#include <cstring>

#include "base/syscall.h"

namespace belljar::broker {
namespace {

// As launcher/protocol.h has it, which this folder may not know.
struct Request {
  std::int32_t family;
  std::int32_t type;
};
constexpr std::size_t kMostAtOnce = 16;

std::vector<Fd> receive_descriptors(int socket_fd) {
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(kMostAtOnce * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  std::vector<Fd> fds;
  if (retry([&] { return ::recvmsg(socket_fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT); }) <= 0)
    return fds;
  const cmsghdr* rights = CMSG_FIRSTHDR(&message);
  if (rights == nullptr || rights->cmsg_type != SCM_RIGHTS) return fds;
  for (std::size_t at = 0; CMSG_LEN(at + sizeof(int)) <= rights->cmsg_len; at += sizeof(int)) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(rights) + at, sizeof fd);
    // Init is not to be trusted: what it sends must not make us wait.
    ::fcntl(fd, F_SETFL, O_NONBLOCK);
    fds.emplace_back(fd);
  }
  return fds;
}

}  // namespace

Async<Fd> Sockets::get(int family, int type) {
  std::vector<Fd>& stock = stock_[{family, type}];
  while (stock.empty() && asking_) co_await answered_.wait();
  if (stock.empty()) co_await ask(family, type);
  if (stock.empty()) co_return Fd();
  Fd socket = std::move(stock.back());
  stock.pop_back();
  co_return socket;
}

Async<void> Sockets::ask(int family, int type) {
  asking_ = true;
  const Request request{family, type};
  const int init_fd = init_.native_handle();
  if (::send(init_fd, &request, sizeof request, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof request &&
      co_await readable(init_))
    for (Fd& fd : receive_descriptors(init_fd)) stock_[{family, type}].push_back(std::move(fd));
  asking_ = false;
  answered_.raise();
}

}  // namespace belljar::broker
