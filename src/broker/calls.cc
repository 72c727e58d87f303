#include "broker/calls.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstring>

#include "base/uapi.h"
#include "broker/guest_thread.h"

namespace belljar::broker {
namespace {

constexpr std::size_t kMostMessages = 1024;  // the kernel's own limit for sendmmsg

std::optional<Endpoint> read_endpoint(pid_t thread, std::uint64_t from, std::uint64_t size) {
  sockaddr_storage storage{};
  const std::size_t length = std::min<std::uint64_t>(size, sizeof storage);
  if (from == 0 || length < sizeof(sa_family_t) || !read_memory(thread, from, &storage, length))
    return std::nullopt;
  return Endpoint::from(storage, static_cast<socklen_t>(length));
}

// To 0.0.0.0 means to loopback.
IpAddress as_the_kernel_takes(const IpAddress& address) {
  if (address.scope() != Scope::unspecified) return address;
  return address.is_v4() ? IpAddress::v4(127, 0, 0, 1) : IpAddress(in6addr_loopback);
}

// One read: it is short, and the guest waits.
Program read_program(pid_t thread) {
  const std::string path = "/proc/" + std::to_string(thread) + "/comm";
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  char text[64];
  const ssize_t n = ::read(file.get(), text, sizeof text);
  std::string name(text, static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  if (name.ends_with('\n')) name.pop_back();
  return {thread, std::move(name)};
}

}  // namespace

Async<void> Calls::serve(std::shared_ptr<Calls> self) {
  Stream& notifications = self->notifications_;
  // The guest waits while we decide, so we take turns on one processor instead of waking
  // another. An older kernel refuses, and then it takes a little longer.
  ::ioctl(notifications.native_handle(), SECCOMP_IOCTL_NOTIF_SET_FLAGS,
          SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
  while (co_await readable(notifications)) {
    pollfd ready{.fd = notifications.native_handle(), .events = POLLIN, .revents = 0};
    ::poll(&ready, 1, 0);
    if ((ready.revents & POLLHUP) != 0) co_return;  // nobody is left who could call
    seccomp_notif call{};
    if ((ready.revents & POLLIN) == 0 || !self->receive(call)) continue;
    // Before its memory is read: do not read another's. After it: what was read was not another's.
    if (!self->is_waiting(call.id)) continue;
    Target target{.id = call.id,
                  .thread = static_cast<pid_t>(call.pid),
                  .fd = static_cast<int>(call.data.args[0]),
                  .endpoints = self->endpoints_of(call),
                  .connects = call.data.nr == SYS_connect};
    if (!self->is_waiting(call.id)) continue;
    if (target.endpoints.empty())
      self->go_on(call.id);  // another family, or no address: nothing that leaves the jar
    else
      begin(self->loop_, decide(self, std::move(target)));
  }
}

bool Calls::receive(seccomp_notif& call) {
  return ::ioctl(notifications_.native_handle(), SECCOMP_IOCTL_NOTIF_RECV, &call) == 0;
}

std::vector<Endpoint> Calls::endpoints_of(const seccomp_notif& call) const {
  const auto thread = static_cast<pid_t>(call.pid);
  const auto& args = call.data.args;
  std::vector<Endpoint> endpoints;
  auto add = [&](std::uint64_t address, std::uint64_t size) {
    std::optional<Endpoint> endpoint = read_endpoint(thread, address, size);
    if (endpoint) endpoint->address = as_the_kernel_takes(endpoint->address);
    if (endpoint && std::ranges::find(endpoints, *endpoint) == endpoints.end())
      endpoints.push_back(*endpoint);
  };
  switch (call.data.nr) {
    case SYS_connect:
      add(args[1], args[2]);
      break;
    case SYS_sendto:
      add(args[4], args[5]);
      break;
    case SYS_sendmsg: {
      msghdr message{};
      if (read_memory(thread, args[1], &message, sizeof message))
        add(reinterpret_cast<std::uint64_t>(message.msg_name), message.msg_namelen);
      break;
    }
    case SYS_sendmmsg: {
      std::vector<mmsghdr> messages(std::min<std::uint64_t>(args[2], kMostMessages));
      if (!messages.empty() &&
          read_memory(thread, args[1], messages.data(), messages.size() * sizeof(mmsghdr)))
        for (const mmsghdr& one : messages)
          add(reinterpret_cast<std::uint64_t>(one.msg_hdr.msg_name), one.msg_hdr.msg_namelen);
      break;
    }
    default:
      break;
  }
  return endpoints;
}

Async<void> Calls::decide(std::shared_ptr<Calls> self, Target target) {
  co_await self->decide(target);
}

Async<void> Calls::decide(const Target& target) {
  std::optional<GuestSocket> socket;  // of which the end need not come before the answer
  for (const Endpoint& endpoint : target.endpoints) {
    const Decision decision = judge_.decide(endpoint, Clock::now());
    if (decision.way == Way::inside) continue;
    // Port 0: a resolver that wants to know from which address it would speak.
    if (endpoint.port == 0) continue;
    if (decision.way == Way::refused) {
      events_.add(
          event_about(endpoint, target.connects ? "tcp" : "udp", decision, program_of(target)));
      co_return finish(target.id, EACCES);
    }
    if (!socket) {
      if (closer_.is_full()) co_return finish(target.id, ENOBUFS);
      if (!is_waiting(target.id)) co_return;
      socket.emplace(look_at(target.thread, target.fd, closer_));
      if (!is_waiting(target.id)) co_return;
    }
    const Answer answer = co_await prepare(target, *socket, endpoint, decision);
    if (answer.error != 0 || answer.done) co_return finish(target.id, answer.error);
  }
  go_on(target.id);
}

// A thread that has ended may have left its number to another, of the host.
bool Calls::is_waiting(std::uint64_t id) {
  return ::ioctl(notifications_.native_handle(), SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

Program Calls::program_of(const Target& target) {
  Program program = read_program(target.thread);
  return is_waiting(target.id) ? program : Program{};
}

Async<Calls::Answer> Calls::prepare(const Target& target, const GuestSocket& socket,
                                    const Endpoint& endpoint, const Decision& decision) {
  if (socket.type == SOCK_DGRAM) co_return Answer{co_await datagrams_.prepare(endpoint)};
  if (socket.type != SOCK_STREAM) co_return Answer{EACCES};
  Program program = program_of(target);
  // Its name is not known before it speaks; then it is told.
  if (decision.way != Way::name) events_.add(event_about(endpoint, "tcp", decision, program));
  const Prepared prepared =
      co_await streams_.prepare(endpoint, decision.way, socket.patient, std::move(program));
  if (!prepared.detour) co_return Answer{prepared.error};
  co_return Answer{connect_for(socket, *prepared.detour), true};
}

void Calls::go_on(std::uint64_t id) {
  seccomp_notif_resp answer{};
  answer.id = id;
  answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  // It fails where the guest's call was interrupted: then there is nothing to answer.
  ::ioctl(notifications_.native_handle(), SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

void Calls::finish(std::uint64_t id, int error) {
  seccomp_notif_resp answer{};
  answer.id = id;
  answer.error = -error;
  ::ioctl(notifications_.native_handle(), SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

}  // namespace belljar::broker
