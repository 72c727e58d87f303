// Events: what the broker decided, kept for the outcome and told at once to who listens.
#pragma once

#include <functional>
#include <mutex>
#include <vector>

#include "belljar/outcome.h"
#include "broker/judge.h"

namespace belljar::broker {

using OnEvent = std::function<void(const NetworkEvent&)>;

class Events {
 public:
  explicit Events(OnEvent on_event) : on_event_(std::move(on_event)) {}

  void add(NetworkEvent event);
  // From any thread.
  std::vector<NetworkEvent> all() const;
  std::uint64_t dropped() const;

 private:
  OnEvent on_event_;
  mutable std::mutex mutex_;
  std::vector<NetworkEvent> events_;
  std::uint64_t dropped_ = 0;
};

// An event about a connection or datagram to `endpoint`.
NetworkEvent event_about(const Endpoint& endpoint, const char* protocol, const Decision& decision);

}  // namespace belljar::broker
