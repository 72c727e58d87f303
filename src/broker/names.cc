#include "broker/names.h"

#include <sys/socket.h>

#include "base/syscall.h"
#include "broker/own_addresses.h"

namespace belljar::broker {
namespace {

// A guest that asks without waiting for answers gets no more of our memory than this.
constexpr int kMostQuestions = 256;
constexpr std::size_t kPerQuestion = 4;  // descriptors of the resolver
constexpr std::uint32_t kLongestTtl = 300;
constexpr std::chrono::seconds kIdle{10};

}  // namespace

Async<void> Names::serve_udp() {
  while (co_await readable(udp_)) {
    for (;;) {
      std::vector<std::byte> packet(kMaxDnsQuery);
      sockaddr_storage from{};
      socklen_t size = sizeof from;
      const ssize_t n = retry([&] {
        return ::recvfrom(udp_.native_handle(), packet.data(), packet.size(), MSG_DONTWAIT,
                          reinterpret_cast<sockaddr*>(&from), &size);
      });
      if (n < 0) break;
      if (busy_ >= kMostQuestions) continue;  // it asks again
      packet.resize(static_cast<std::size_t>(n));
      begin(loop_, answer_udp(std::move(packet), from, size));
    }
  }
}

Async<void> Names::answer_udp(std::vector<std::byte> packet, sockaddr_storage from,
                              socklen_t size) {
  const std::vector<std::byte> bytes = co_await answer(packet, Transport::udp);
  if (!bytes.empty())
    ::sendto(udp_.native_handle(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
             reinterpret_cast<const sockaddr*>(&from), size);
}

Async<void> Names::serve_tcp() {
  while (co_await readable(tcp_)) {
    for (;;) {
      Fd client(::accept4(tcp_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!client) break;
      std::optional<Allowance::Share> share = allowance_.take(1, client.get());
      if (share && busy_ < kMostQuestions)
        begin(loop_, answer_tcp(std::move(client), *std::move(share)));
    }
  }
}

Async<void> Names::answer_tcp(Fd client, [[maybe_unused]] Allowance::Share share) {
  auto stream = std::make_shared<Stream>(loop_, client.release());
  asio::steady_timer idle(loop_, kIdle);
  // By value: the timer's handler may outlive this coroutine's frame.
  idle.async_wait([stream](const boost::system::error_code& error) {
    if (!error) stream->cancel();
  });
  std::vector<std::byte> held;
  for (;;) {
    Result<std::optional<Bytes>> message = next_dns_message(held);
    if (!message) co_return;
    if (*message) {
      const std::size_t size = (*message)->size() + 2;
      const std::vector<std::byte> bytes =
          with_dns_length(co_await answer(**message, Transport::tcp));
      held.erase(held.begin(), held.begin() + static_cast<std::ptrdiff_t>(size));
      if (::send(stream->native_handle(), bytes.data(), bytes.size(),
                 MSG_DONTWAIT | MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size()))
        co_return;
      continue;
    }
    const std::size_t before = held.size();
    held.resize(before + kMaxDnsQuery);
    const ssize_t n = retry([&] {
      return ::recv(stream->native_handle(), held.data() + before, kMaxDnsQuery, MSG_DONTWAIT);
    });
    const bool waits = n < 0 && errno == EAGAIN;
    held.resize(before + static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    if (n > 0) continue;
    if (!waits || !co_await readable(*stream)) co_return;
  }
}

Async<std::vector<std::byte>> Names::answer(std::span<const std::byte> packet,
                                            Transport transport) {
  std::expected<DnsQuestion, DnsError> question = read_dns_query(packet);
  if (question) co_return co_await answer(std::move(*question), transport);
  const DnsError& error = question.error();
  if (!error.question) co_return std::vector<std::byte>();
  co_return dns_refusal(*error.question, error.rcode);
}

Async<std::vector<std::byte>> Names::answer(DnsQuestion question, Transport transport) {
  const Verdict verdict = judge_.rules().name(question.name);
  if (!verdict.allowed) {
    note(question, verdict);
    co_return dns_refusal(question, Rcode::no_such_name);
  }
  if (question.type != kDnsA && question.type != kDnsAaaa)
    co_return dns_answer(question, {}, kLongestTtl, transport);
  std::optional<Allowance::Share> share = allowance_.take(kPerQuestion, udp_.native_handle());
  if (!share) co_return dns_refusal(question, Rcode::server_failure);
  ++busy_;
  const Resolved resolved =
      co_await resolver_.resolve(question.name, question.type == kDnsA ? AF_INET : AF_INET6);
  --busy_;
  share.reset();
  if (resolved.kind == Resolved::Kind::no_such_name)
    co_return dns_refusal(question, Rcode::no_such_name);
  if (resolved.kind == Resolved::Kind::failed)
    co_return dns_refusal(question, Rcode::server_failure);

  const std::optional<std::vector<IpAddress>> own = own_addresses();
  if (!own) co_return dns_refusal(question, Rcode::server_failure);
  std::vector<IpAddress> usable;
  Verdict refused;
  for (const IpAddress& address : resolved.addresses) {
    Verdict use = judge_.rules().resolved(question.name, address, *own);
    if (!use.allowed) {
      refused = std::move(use);
      continue;
    }
    judge_.pin(question.name, address, std::chrono::seconds(resolved.ttl), Clock::now());
    usable.push_back(address);
  }
  judge_.set_own_addresses(*own);
  if (usable.empty() && !resolved.addresses.empty()) {
    note(question, refused);
    co_return dns_refusal(question, Rcode::no_such_name);
  }
  co_return dns_answer(question, usable, std::min(resolved.ttl, kLongestTtl), transport);
}

void Names::note(const DnsQuestion& question, const Verdict& verdict) {
  NetworkEvent event;
  event.name = question.name;
  event.protocol = "dns";
  event.rule = verdict.rule;
  event.why = verdict.why;
  event.would_allow = rule_that_would_allow(question.name);
  events_.add(std::move(event));
}

}  // namespace belljar::broker
