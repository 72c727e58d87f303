// Any bytes as rules, one a line; a line that begins with `!` denies, the last line is
// what is asked for. A rule survives being written and read, a deny is never allowed,
// and nothing is below a name that only ends like it.
#include <cstdlib>

#include "broker/rules.h"

namespace belljar {
namespace {

void must(bool true_or_bug) {
  if (!true_or_bug) std::abort();
}

void check_rule(std::string_view text) {
  const Result<NetRule> rule = parse_net_rule(text);
  if (!rule) return;
  const Result<NetRule> again = parse_net_rule(rule->text());
  must(again && *again == *rule && again->text() == rule->text());
  must(rule->covers(*rule));
  if (rule->kind == NetRule::Kind::below) {
    must(!rule->matches_name(rule->name));
    must(!rule->matches_name("evil" + rule->name));
    must(!rule->matches_name("a." + rule->name + ".evil"));
    must(rule->matches_name("a." + rule->name));
  }
}

void check_name(std::string_view text) {
  const Result<std::string> name = canonical_name(text);
  if (!name) return;
  must(canonical_name(*name) == *name && canonical_wire_name(*name) == *name);
  must(!IpAddress::parse(*name));
}

// What one rule alone says must be what it says among others.
bool named(const std::vector<std::string>& rules, const NetRule& asked, std::uint16_t port,
           bool denies) {
  for (const std::string& text : rules) {
    const NetRule rule = parse_net_rule(text).value();
    const bool host = asked.kind == NetRule::Kind::addresses
                          ? rule.kind == asked.kind && rule.addresses.holds(asked.addresses.base())
                          : rule.matches_name(asked.name);
    bool has_port = denies && rule.denied_ports().holds(port);
    for (const PortRange& range : rule.allowed_ports())
      has_port = has_port || (!denies && range.holds(port));
    if (host && has_port) return true;
  }
  return false;
}

void check_verdicts(const Policy& policy, const NetRule& asked) {
  const broker::Rules rules = broker::Rules::compile(policy).value();
  const std::uint16_t port = asked.ports ? asked.ports->first : 443;
  if (asked.kind == NetRule::Kind::addresses) {
    const IpAddress address = asked.addresses.base();
    const bool allowed = rules.address(address, port).allowed;
    must(!allowed || named(policy.hosts, asked, port, false));
    must(!allowed || !named(policy.deny_hosts, asked, port, true));
    must(!allowed || (address.scope() != Scope::loopback && address.scope() != Scope::unspecified));
    for (const std::string& host : policy.hosts) {
      const Result<NetRule> rule = parse_net_rule(host);
      const broker::Verdict verdict = rules.connection(rule->name, address, port, {});
      must(!verdict.allowed || !named(policy.deny_hosts, asked, port, true));
      must(!verdict.allowed || address.scope() == Scope::global || allowed);
    }
  } else if (asked.kind == NetRule::Kind::name) {
    const bool allowed = rules.name(asked.name, port).allowed;
    must(allowed ==
         (named(policy.hosts, asked, port, false) && !named(policy.deny_hosts, asked, port, true)));
    must(!allowed || rules.name(asked.name).allowed);
  }
}

}  // namespace
}  // namespace belljar

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace belljar;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  Policy policy;
  policy.network = Network::hosts;
  for (std::size_t end = text.find('\n'); end != text.npos; end = text.find('\n')) {
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    const bool denies = line.starts_with('!');
    if (denies) line.remove_prefix(1);
    check_rule(line);
    if (parse_net_rule(line)) (denies ? policy.deny_hosts : policy.hosts).emplace_back(line);
  }
  check_rule(text);
  check_name(text);
  if (const Result<NetRule> asked = parse_net_rule(text)) check_verdicts(policy, *asked);
  return 0;
}
