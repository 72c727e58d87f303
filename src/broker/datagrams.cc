#include "broker/datagrams.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <vector>

#include "base/syscall.h"
#include "broker/bind.h"

namespace belljar::broker {
namespace {

constexpr std::size_t kLargest = 65536;
constexpr std::chrono::seconds kIdle{120};

// QUIC hides the name it asks for, so by a name it cannot be let through: the guest is to
// fall back to TCP.
bool may_be_quic(const Endpoint& endpoint, const Decision& decision) {
  return decision.way == Way::name && (endpoint.port == 80 || endpoint.port == 443);
}

}  // namespace

Async<int> Datagrams::prepare(Endpoint endpoint) {
  if (stands_.contains(endpoint)) co_return 0;
  Fd socket = co_await sockets_.get(endpoint.address.is_v4() ? AF_INET : AF_INET6, SOCK_DGRAM);
  if (stands_.contains(endpoint)) co_return 0;
  if (!socket) co_return ENETUNREACH;
  if (const int err = bind_anywhere(socket.get(), endpoint); err != 0) co_return err;
  std::optional<Allowance::Share> share = take(socket.get());
  if (!share) co_return ENOBUFS;
  auto stand = std::make_shared<Stand>(loop_, std::move(socket));
  stand->share = *std::move(share);
  stands_[endpoint] = stand;
  begin(loop_, forward(endpoint, stand));
  co_return 0;
}

std::optional<Allowance::Share> Datagrams::take(int fd) {
  std::optional<Allowance::Share> share = allowance_.take(1, fd);
  if (share) return share;
  forget_old();
  return allowance_.take(1, fd);
}

void Datagrams::forget_old() {
  const Clock::time_point old = Clock::now() - kIdle;
  std::erase_if(stands_, [&](const auto& entry) {
    Stand& stand = *entry.second;
    std::erase_if(stand.flows, [&](const auto& flow) {
      if (flow.second->used >= old) return false;
      flow.second->outside.close();
      return true;
    });
    if (stand.used >= old || !stand.flows.empty()) return false;
    stand.stream.close();
    return true;
  });
}

Async<void> Datagrams::forward(Endpoint endpoint, std::shared_ptr<Stand> stand) {
  std::vector<std::byte> packet(kLargest);
  while (co_await readable(stand->stream)) {
    for (;;) {
      sockaddr_storage from{};
      socklen_t size = sizeof from;
      const ssize_t n = retry([&] {
        return ::recvfrom(stand->stream.native_handle(), packet.data(), packet.size(), MSG_DONTWAIT,
                          reinterpret_cast<sockaddr*>(&from), &size);
      });
      if (n < 0) break;
      stand->used = Clock::now();
      const std::optional<Endpoint> guest = Endpoint::from(from, size);
      Decision decision = judge_.decide(endpoint, Clock::now());
      if (may_be_quic(endpoint, decision)) {
        decision.way = Way::refused;
        decision.verdict = {.allowed = false, .rule = {}, .why = "QUIC hides the name it asks for"};
      }
      const bool goes = decision.way != Way::refused && decision.way != Way::inside;
      if (!goes) events_.add(event_about(endpoint, "udp", decision));
      if (!goes) {  // the next one is refused by the kernel, at once
        stands_.erase(endpoint);
        stand->stream.close();
        co_return;
      }
      std::shared_ptr<Flow> flow;
      if (guest) flow = flow_from(*guest, endpoint, decision, stand);
      if (flow == nullptr) continue;
      flow->used = Clock::now();
      ::send(flow->outside.native_handle(), packet.data(), static_cast<std::size_t>(n),
             MSG_DONTWAIT | MSG_NOSIGNAL);
    }
  }
}

std::shared_ptr<Datagrams::Flow> Datagrams::flow_from(const Endpoint& guest,
                                                      const Endpoint& endpoint,
                                                      const Decision& decision,
                                                      const std::shared_ptr<Stand>& stand) {
  const auto known = stand->flows.find(guest);
  if (known != stand->flows.end()) return known->second;
  const Endpoint to = outside_of(endpoint, decision.way);
  Fd socket(::socket(to.address.is_v4() ? AF_INET : AF_INET6,
                     SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const SocketAddress address = to.to_socket_address();
  std::optional<Allowance::Share> share = take(socket.get());
  if (!share || ::connect(socket.get(), address.get(), address.size) < 0) return nullptr;
  events_.add(event_about(endpoint, "udp", decision));
  auto flow = std::make_shared<Flow>(loop_, std::move(socket));
  flow->share = *std::move(share);
  stand->flows[guest] = flow;
  begin(loop_, bring_back(guest, stand, flow));
  return flow;
}

Async<void> Datagrams::bring_back(Endpoint guest, std::shared_ptr<Stand> stand,
                                  std::shared_ptr<Flow> flow) {
  std::vector<std::byte> packet(kLargest);
  const SocketAddress to = guest.to_socket_address();
  while (co_await readable(flow->outside)) {
    const ssize_t n = retry([&] {
      return ::recv(flow->outside.native_handle(), packet.data(), packet.size(), MSG_DONTWAIT);
    });
    if (n < 0 && errno == EAGAIN) continue;
    if (n < 0) break;  // nobody is there
    flow->used = Clock::now();
    ::sendto(stand->stream.native_handle(), packet.data(), static_cast<std::size_t>(n),
             MSG_DONTWAIT | MSG_NOSIGNAL, to.get(), to.size);
  }
  stand->flows.erase(guest);
}

}  // namespace belljar::broker
