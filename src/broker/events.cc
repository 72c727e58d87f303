#include "broker/events.h"

#include <algorithm>

namespace belljar::broker {
namespace {

// A guest must not fill our memory with what it tries in vain.
constexpr std::size_t kKept = 10'000;

}  // namespace

void Events::add(NetworkEvent event) {
  event.time = std::chrono::system_clock::now();
  if (on_event_) on_event_(event);
  const std::lock_guard lock(mutex_);
  if (events_.size() < kKept)
    events_.push_back(std::move(event));
  else
    ++dropped_;
}

std::vector<NetworkEvent> Events::all() const {
  const std::lock_guard lock(mutex_);
  return events_;
}

std::uint64_t Events::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

NetworkEvent event_about(const Endpoint& endpoint, const char* protocol, const Decision& decision) {
  NetworkEvent event;
  event.address = endpoint.address.text();
  event.port = endpoint.port;
  event.protocol = protocol;
  event.allowed = decision.way != Way::refused;
  event.rule = decision.verdict.rule;
  event.why = decision.verdict.why;
  if (!decision.names.empty()) event.name = decision.names.front();
  if (!event.allowed)
    event.would_allow = event.name.empty() ? rule_that_would_allow(endpoint.address, endpoint.port)
                                           : rule_that_would_allow(event.name, endpoint.port);
  return event;
}

}  // namespace belljar::broker
