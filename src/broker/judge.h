// Judge: what becomes of a connection. It knows the rules, and which allowed name each
// address was given out for.
#pragma once

#include <chrono>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/address.h"
#include "broker/rules.h"

namespace belljar::broker {

enum class Way {
  refused,
  inside,     // the jar's own loopback: none of our business
  localhost,  // the host's loopback, by a rule
  address,    // by a rule for the address
  name,       // by rules for the names it was given out for; what is said must name one
};

struct Decision {
  Way way = Way::refused;
  Verdict verdict;
  std::vector<std::string> names;  // Way::name: any of these; refused: what it may have meant
};

class Judge {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Judge(const Rules& rules) : rules_(rules) {}

  const Rules& rules() const { return rules_; }
  Decision decide(const Endpoint& endpoint, Clock::time_point now) const;

  // From now on `address` stands for `name`, at least for `ttl`.
  void pin(const std::string& name, const IpAddress& address, std::chrono::seconds ttl,
           Clock::time_point now);
  // A name must not lead to these.
  void set_own_addresses(std::vector<IpAddress> own) { own_ = std::move(own); }

 private:
  struct Pin {
    std::string name;
    Clock::time_point until;
  };
  const Rules& rules_;
  std::map<IpAddress, std::vector<Pin>> pins_;
  std::vector<IpAddress> own_;
};

}  // namespace belljar::broker
