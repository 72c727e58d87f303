// Names: the guest's DNS. Port 53 of its loopback is ours; who asks for an allowed name
// is told the addresses that the host's own resolver knows, and those are pinned.
#pragma once

#include "base/loop.h"
#include "broker/allowance.h"
#include "broker/dns.h"
#include "broker/events.h"
#include "broker/resolver.h"

namespace belljar::broker {

class Names {
 public:
  Names(Loop& loop, Judge& judge, Events& events, Allowance& allowance, Fd udp, Fd tcp)
      : loop_(loop),
        judge_(judge),
        events_(events),
        allowance_(allowance),
        resolver_(loop),
        udp_(loop, udp.release()),
        tcp_(loop, tcp.release()) {}

  Async<void> serve_udp();
  Async<void> serve_tcp();

 private:
  Async<void> answer_udp(std::vector<std::byte> packet, sockaddr_storage from, socklen_t size);
  Async<void> answer_tcp(Fd client, Allowance::Share share);
  // Empty: no answer is due.
  Async<std::vector<std::byte>> answer(std::span<const std::byte> packet, Transport transport);
  Async<std::vector<std::byte>> answer(DnsQuestion question, Transport transport);
  void note(const DnsQuestion& question, const Verdict& verdict);

  Loop& loop_;
  Judge& judge_;
  Events& events_;
  Allowance& allowance_;
  Resolver resolver_;
  Stream udp_;
  Stream tcp_;
  int busy_ = 0;  // questions under way
};

}  // namespace belljar::broker
