#include "broker/judge.h"

#include <algorithm>

namespace belljar::broker {
namespace {

// Programs keep an address longer than its record says: Java 30 s, a database's pool of
// connections for ever. An hour is what a jar usually lives at most.
constexpr std::chrono::hours kPinned{1};

// A guest that asks for ever new names of a wildcard must not fill our memory.
constexpr std::size_t kMaxPins = 4096;

bool is_inside(const IpAddress& address) {
  const Scope scope = address.scope();
  return scope == Scope::loopback || scope == Scope::unspecified;
}

}  // namespace

Decision Judge::decide(const Endpoint& endpoint, Clock::time_point now) const {
  if (is_inside(endpoint.address)) {
    Verdict verdict = rules_.localhost_verdict(endpoint.port);
    const Way way = verdict.allowed ? Way::localhost : Way::inside;
    return {way, std::move(verdict), {}};
  }
  Decision decision{Way::refused, rules_.address(endpoint.address, endpoint.port), {}};
  if (decision.verdict.allowed) decision.way = Way::address;
  const bool denied_by_rule = !decision.verdict.allowed && !decision.verdict.rule.empty();
  if (decision.verdict.allowed || denied_by_rule) return decision;

  const auto pinned = pins_.find(endpoint.address);
  if (pinned == pins_.end()) return decision;
  for (const Pin& pin : pinned->second) {
    if (pin.until < now) continue;
    Verdict verdict = rules_.connection(pin.name, endpoint.address, endpoint.port, own_);
    if (verdict.allowed && decision.way != Way::name) {
      decision.way = Way::name;
      decision.names.clear();
    }
    if (verdict.allowed == (decision.way == Way::name)) {
      decision.names.push_back(pin.name);
      decision.verdict = std::move(verdict);
    }
  }
  return decision;
}

void Judge::pin(const std::string& name, const IpAddress& address, std::chrono::seconds ttl,
                Clock::time_point now) {
  if (pins_.size() >= kMaxPins && !pins_.contains(address)) pins_.erase(pins_.begin());
  std::vector<Pin>& pins = pins_[address];
  const Clock::time_point until = now + std::max<std::chrono::seconds>(ttl, kPinned);
  auto known = std::ranges::find(pins, name, &Pin::name);
  if (known != pins.end())
    known->until = until;
  else if (pins.size() < kMaxPins)
    pins.push_back({name, until});
}

}  // namespace belljar::broker
