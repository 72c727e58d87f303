#include "plan/explain_network.h"

#include <boost/json.hpp>

#include <algorithm>

#include "base/printable.h"
#include "broker/rules.h"

namespace belljar {
namespace {

namespace json = boost::json;

constexpr std::uint16_t kUsualPort = 443;

std::string_view meaning(Network network) {
  switch (network) {
    case Network::none:
      return "none: no sockets but AF_UNIX";
    case Network::loopback:
      return "loopback: an own one; nothing outside can be reached";
    case Network::full:
      return "full: the host's network, without limits";
    case Network::hosts:
      return "hosts: an own loopback, and outside only what these rules allow";
  }
  return "";
}

std::string host_words(const NetRule& rule) {
  switch (rule.kind) {
    case NetRule::Kind::name:
      return "this name";
    case NetRule::Kind::below:
      return "every name below " + rule.name + ", not itself";
    case NetRule::Kind::addresses:
      return rule.addresses.is_single() ? "this address" : "every address of this range";
    case NetRule::Kind::localhost:
      return "the host's own loopback";
  }
  return "";
}

std::string port_words(const std::vector<PortRange>& ports) {
  if (ports.front() == PortRange{}) return "any port";
  const bool one = ports.size() == 1 && ports.front().first == ports.front().last;
  std::string text;
  for (const PortRange& range : ports) {
    text += (text.empty() ? "" : " and ") + std::to_string(range.first);
    if (range.last != range.first) text += " to " + std::to_string(range.last);
  }
  return (one ? "port " : "ports ") + text;
}

// A rule of a policy that was never checked may be anything; then its text is all.
struct Explained {
  std::string_view decides;  // allow or deny
  std::string written;
  Result<NetRule> rule;
  std::vector<PortRange> ports;
};

std::vector<Explained> explained(const Policy& policy) {
  std::vector<Explained> all;
  if (policy.network != Network::hosts) return all;
  for (const std::string& text : policy.hosts) {
    Result<NetRule> rule = parse_net_rule(text);
    all.push_back({"allow", text, rule, rule ? rule->allowed_ports() : std::vector<PortRange>{}});
  }
  for (const std::string& text : policy.deny_hosts) {
    Result<NetRule> rule = parse_net_rule(text);
    all.push_back({"deny", text, rule, {rule ? rule->denied_ports() : PortRange{}}});
  }
  return all;
}

std::string_view kind_name(NetRule::Kind kind) {
  switch (kind) {
    case NetRule::Kind::name:
      return "name";
    case NetRule::Kind::below:
      return "names_below";
    case NetRule::Kind::addresses:
      return "addresses";
    case NetRule::Kind::localhost:
      return "localhost";
  }
  return "";
}

constexpr std::string_view kNamesAreChecked =
    "  A name is checked twice: it must be allowed to be resolved, and the server that TLS\n"
    "  (SNI) or HTTP (Host) asks for must be an allowed name too. TLS without SNI is refused.\n"
    "  Other protocols go by the addresses that the name had when it was resolved.\n"
    "  A name that leads to a loopback, link-local, private or multicast address, or to one\n"
    "  of this host's own, is refused there unless a rule allows that address.\n";

struct Asked {
  NetRule rule;
  std::uint16_t port;
};

Result<Asked> parse_asked(std::string_view text) {
  NetRule rule = TRY(parse_net_rule(text));
  const bool one_port = !rule.ports || rule.ports->first == rule.ports->last;
  const bool one_host = rule.kind != NetRule::Kind::below &&
                        (rule.kind != NetRule::Kind::addresses || rule.addresses.is_single());
  if (!one_host || !one_port) return fail("--why takes one host and one port");
  return Asked{rule, rule.ports ? rule.ports->first : kUsualPort};
}

broker::Verdict judge(const broker::Rules& rules, const Asked& asked) {
  switch (asked.rule.kind) {
    case NetRule::Kind::addresses:
      return rules.address(asked.rule.addresses.base(), asked.port);
    case NetRule::Kind::localhost:
      return rules.localhost_verdict(asked.port);
    default:
      return rules.name(asked.rule.name, asked.port);
  }
}

std::string flag_for(const Asked& asked) {
  if (asked.rule.kind == NetRule::Kind::addresses)
    return broker::rule_that_would_allow(asked.rule.addresses.base(), asked.port);
  return broker::rule_that_would_allow(asked.rule.name, asked.port);
}

std::string explain_by_rules(const Policy& policy, std::string_view host) {
  const Result<broker::Rules> rules = broker::Rules::compile(policy);
  if (!rules) return printable(rules.error().message()) + "\n";
  const Result<Asked> asked = parse_asked(host);
  if (!asked) return printable(asked.error().message()) + "\n";
  const std::string what = flag_for(*asked);
  const broker::Verdict verdict = judge(*rules, *asked);
  std::string text = what + ": ";
  if (verdict.allowed) {
    text += "can be reached, by the rule " + verdict.rule + "; --deny-net-hosts=" + what +
            " would deny it.\n";
    if (asked->rule.kind == NetRule::Kind::name) text += kNamesAreChecked;
    return text;
  }
  if (!verdict.rule.empty())
    return text + "cannot be reached. The rule " + verdict.rule +
           " of deny_net_hosts wins over every allow; leave it out to allow this.\n";
  return text + "cannot be reached: " + verdict.why +
         ". Kept by the network namespace and the broker outside it; --allow-net=" + what +
         " would allow it.\n";
}

}  // namespace

std::string explain_network(const Policy& policy) {
  std::string text = "  " + std::string(meaning(policy.network)) + "\n";
  bool names = false;
  for (const Explained& one : explained(policy)) {
    text.append(one.decides == "allow" ? "  allow  " : "  deny   ").append(printable(one.written));
    if (one.rule) text += "  (" + host_words(*one.rule) + ", " + port_words(one.ports) + ")";
    text += "\n";
    names = names || (one.rule && (one.rule->kind == NetRule::Kind::name ||
                                   one.rule->kind == NetRule::Kind::below));
  }
  if (names) text += kNamesAreChecked;
  for (const Published& pair : policy.publish)
    text += "  port " + std::to_string(pair.port) +
            " of the guest is the host's 127.0.0.1:" + std::to_string(pair.host_port) + "\n";
  return text;
}

json::array network_rules_to_json(const Policy& policy) {
  json::array rules;
  for (const Explained& one : explained(policy)) {
    json::array ports;
    for (const PortRange& range : one.ports)
      ports.push_back({{"first", range.first}, {"last", range.last}});
    rules.push_back({{"rule", one.written},
                     {"decides", one.decides},
                     {"host", one.rule ? kind_name(one.rule->kind) : ""},
                     {"ports", ports}});
  }
  return rules;
}

json::array published_to_json(const Policy& policy) {
  json::array all;
  for (const Published& pair : policy.publish)
    all.push_back({{"host_port", pair.host_port}, {"port", pair.port}});
  return all;
}

std::string explain_host(const Policy& policy, std::string_view host) {
  std::string text(host);
  switch (policy.network) {
    case Network::full:
      return text +
             ": can be reached. network = \"full\" is the host's own network; --network=none or "
             "--network=loopback would deny it.\n";
    case Network::loopback:
      return text +
             ": cannot be reached. network = \"loopback\" gives the guest a loopback of its own, "
             "kept by its network namespace; --network=full would allow every host.\n";
    case Network::none:
      return text +
             ": cannot be reached. network = \"none\", kept by the network namespace and seccomp; "
             "--network=full would allow every host.\n";
    case Network::hosts:
      return explain_by_rules(policy, host);
  }
  return text;
}

}  // namespace belljar
