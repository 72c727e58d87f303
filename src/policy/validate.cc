#include "policy/validate.h"

#include <algorithm>

#include "policy/net_rule.h"

namespace belljar {
namespace {

Status validate_hosts(std::string_view key, const std::vector<std::string>& hosts) {
  for (const std::string& host : hosts)
    if (Result<NetRule> rule = parse_net_rule(host); !rule)
      return fail(std::string(key) + ": " + rule.error().what, 0, rule.error().hint);
  return {};
}

Status validate_published(const Policy& policy) {
  if (policy.publish.empty()) return {};
  if (policy.network == Network::full)
    return fail("publish: the guest has the host's own network, and its ports are the host's", 0,
                "leave publish out, or give the guest its own: network = \"loopback\", allow_net");
  if (policy.network == Network::none)
    return fail("publish: the guest has no network to listen on", 0, "network = \"loopback\"");
  std::vector<std::uint16_t> ports;
  for (const Published& pair : policy.publish) {
    if (std::ranges::find(ports, pair.host_port) != ports.end())
      return fail("publish: the host's port " + std::to_string(pair.host_port) + " is taken twice");
    ports.push_back(pair.host_port);
  }
  return {};
}

}  // namespace

Status validate(const Policy& policy) {
  if (policy.mode == Mode::off) return {};
  TRY(validate_hosts("allow_net", policy.hosts));
  TRY(validate_hosts("deny_net_hosts", policy.deny_hosts));
  if (policy.network == Network::full && !policy.deny_hosts.empty())
    return fail("deny_net_hosts: the host's own network is not watched, so no host can be denied",
                0, "say what is allowed: allow_net = [\"HOST\"]");
  return validate_published(policy);
}

}  // namespace belljar
