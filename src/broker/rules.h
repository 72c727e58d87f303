// The rules of a policy about hosts, compiled to be asked once for each connection.
// Pure: no socket, no resolver, no clock. Names are canonical (policy/host_name.h).
//
// Who asks what:
//   a DNS question             name(N), then resolved(N, A, own) for each answer A
//   a connect to a pinned A    connection(N, A, port, own) for the name N it was pinned for
//   a connect to any other A   address(A, port)
//   SNI or Host on port p      name(N, p)
//   the guest's 127.0.0.1:p    localhost(p), when nothing inside listens there
//
// A deny wins over every allow. The host's loopback is only ever reached by localhost().
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/address.h"
#include "belljar/policy.h"
#include "policy/net_rule.h"

namespace belljar::broker {

struct Verdict {
  bool allowed = false;
  std::string rule;  // the rule that decided, as written; empty: none did
  std::string why;   // for people, when it is not allowed: "no rule names it"
  bool operator==(const Verdict&) const = default;
};

class Rules {
 public:
  static Result<Rules> compile(const Policy& policy);

  // May this name be resolved at all: is a port of it allowed, and not denied?
  Verdict name(std::string_view canonical) const;
  Verdict name(std::string_view canonical, std::uint16_t port) const;

  // By the rules for addresses only.
  Verdict address(const IpAddress& address, std::uint16_t port) const;

  // May an address be used that an allowed name resolved to? Not when it is denied, and
  // not when it lies within the host or its network, unless a rule for addresses names
  // it: else whoever answers for the name would choose what of ours the guest reaches.
  Verdict resolved(std::string_view canonical, const IpAddress& address,
                   std::span<const IpAddress> hosts_own) const;
  // The same, of a connection: the name, the address and the port together.
  Verdict connection(std::string_view canonical, const IpAddress& address, std::uint16_t port,
                     std::span<const IpAddress> hosts_own) const;

  // May the host's own loopback be reached on this port?
  bool localhost(std::uint16_t port) const;
  Verdict localhost_verdict(std::uint16_t port) const;
  std::vector<PortRange> localhost_ports() const;  // on which it may

 private:
  struct Entry {
    Prefix addresses;  // of a rule for addresses
    std::vector<PortRange> ports;
    std::string written;

    bool holds(std::uint16_t port) const;
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };
  using Names = std::unordered_map<std::string, std::vector<Entry>, Hash, std::equal_to<>>;
  // All that allow, or all that deny.
  struct Side {
    Names names, below;
    std::vector<Entry> addresses, localhost;

    void add(const NetRule& rule, Entry entry);
    // The first entry for the name that `wanted` accepts.
    template <class F>
    const Entry* find(std::string_view canonical, F&& wanted) const;
    std::vector<PortRange> ports_of(std::string_view canonical) const;
  };

  const Entry* allowing(const IpAddress& address, std::optional<std::uint16_t> port) const;
  const Entry* denying(const IpAddress& address, std::optional<std::uint16_t> port) const;
  Verdict resolved(Verdict named, const IpAddress& address, std::optional<std::uint16_t> port,
                   std::span<const IpAddress> hosts_own) const;

  Side allow_, deny_;
};

// What to put after --allow-net= to allow this one thing. The name is canonical.
std::string rule_that_would_allow(std::string_view name);
std::string rule_that_would_allow(std::string_view name, std::uint16_t port);
std::string rule_that_would_allow(const IpAddress& address, std::uint16_t port);

}  // namespace belljar::broker
