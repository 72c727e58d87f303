// Broker: the guest's way out, by the rules, for every program and without its doing.
//
// The jar's network namespace has nothing but a loopback, to which every address leads.
// The broker stands there: on port 53, and on exactly those addresses and ports that the
// rules allow and the guest asks for. What arrives is judged by where it arrived, opened
// outside, and relayed. No socket of the host's network ever enters the jar, so there is
// nothing in it that could be aimed elsewhere.
#pragma once

#include <memory>
#include <vector>

#include "base/fd.h"
#include "belljar/policy.h"
#include "broker/events.h"
#include "broker/rules.h"

namespace belljar::broker {

// What of the jar it needs.
struct Doors {
  Fd notifications;  // the calls that wait for an answer
  Fd dns_udp, dns_tcp;
  Fd sockets;  // where init gives out sockets
};

class Broker {
 public:
  // Runs on a thread of its own until it is stopped.
  static Result<std::unique_ptr<Broker>> start(const Policy& policy, const Rules& rules,
                                               Doors doors, OnEvent on_event);
  ~Broker();
  Broker(const Broker&) = delete;
  Broker& operator=(const Broker&) = delete;

  // Another process of the jar, whose calls are its own: it joined, and did not inherit the
  // filter of the others.
  void serve_also(Fd notifications);
  // When the jar has ended: passes on what the guest had said, if that is quick.
  void stop();
  // What it decided so far, and how much of that is too much to be kept.
  std::vector<NetworkEvent> events() const;
  std::uint64_t dropped_events() const;

 private:
  struct Inside;
  explicit Broker(std::unique_ptr<Inside> inside);
  std::unique_ptr<Inside> inside_;
};

}  // namespace belljar::broker
