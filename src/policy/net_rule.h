// One rule about hosts: HOST[:PORT[-PORT]], where HOST is a name, *.name (what is below
// it, not itself), an address, a range ADDRESS/LENGTH, or localhost. IPv6 with a port
// stands in brackets: [2001:db8::1]:443, [2001:db8::]/32:443.
//
// localhost is the host's own loopback, and needs a port; a rule for a loopback address
// is refused, so that there is one way to say it. Without a port, an allowed name has
// ports 80 and 443, an allowed address any; a denied host has none.
//
// @NAME stands for the rules of a group, [net_groups] in a configuration file. It is
// expanded before a policy is made.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/address.h"
#include "base/result.h"
#include "belljar/policy.h"
#include "policy/host_name.h"

namespace belljar {

struct PortRange {
  std::uint16_t first = 1;
  std::uint16_t last = 65535;

  constexpr bool holds(std::uint16_t port) const { return first <= port && port <= last; }
  constexpr bool holds(const PortRange& other) const {
    return first <= other.first && other.last <= last;
  }
  constexpr bool operator==(const PortRange&) const = default;
};

struct NetRule {
  enum class Kind { name, below, addresses, localhost };

  Kind kind = Kind::name;
  std::string name;                // canonical; for `below` without the "*."
  Prefix addresses;                // for `addresses`
  std::optional<PortRange> ports;  // absent: none was written

  std::vector<PortRange> allowed_ports() const;
  PortRange denied_ports() const;
  bool matches_name(std::string_view canonical) const;
  // Whether an allow of this one allows all that an allow of `other` does.
  bool covers(const NetRule& other) const;
  std::string text() const;  // in canonical form; parses to the same rule
  bool operator==(const NetRule&) const = default;
};

Result<NetRule> parse_net_rule(std::string_view text);

// 1 to 65535, in plain digits.
Result<std::uint16_t> parse_port(std::string_view text);

// HOSTPORT:PORT
Result<Published> parse_published(std::string_view text);

using NetGroups = std::map<std::string, std::vector<std::string>, std::less<>>;

bool is_group(std::string_view rule);  // @NAME
// Letters, digits, "-", "_" and ".".
bool is_group_name(std::string_view name);
// Groups in place of their names, also inside groups; each rule once. A name that is not
// there is an error, as is a group that holds itself or nothing.
Result<std::vector<std::string>> expand_groups(const std::vector<std::string>& rules,
                                               const NetGroups& groups);

}  // namespace belljar
