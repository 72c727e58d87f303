#include "broker/rules.h"

#include <algorithm>

namespace belljar::broker {
namespace {

constexpr PortRange kAnyPort{};

bool any_holds(const std::vector<PortRange>& ranges, std::uint16_t port) {
  return std::ranges::any_of(ranges, [&](const PortRange& range) { return range.holds(port); });
}

std::vector<PortRange> without(const PortRange& whole, const PortRange& taken) {
  std::vector<PortRange> left;
  if (taken.last < whole.first || whole.last < taken.first) return {whole};
  if (whole.first < taken.first)
    left.push_back({whole.first, static_cast<std::uint16_t>(taken.first - 1)});
  if (taken.last < whole.last)
    left.push_back({static_cast<std::uint16_t>(taken.last + 1), whole.last});
  return left;
}

std::vector<PortRange> without(std::vector<PortRange> ranges, const std::vector<PortRange>& taken) {
  for (const PortRange& one : taken) {
    std::vector<PortRange> left;
    for (const PortRange& range : ranges)
      for (const PortRange& part : without(range, one)) left.push_back(part);
    ranges = std::move(left);
  }
  return ranges;
}

bool is_loopback(const IpAddress& address) {
  const Scope scope = address.scope();
  return scope == Scope::loopback || scope == Scope::unspecified;
}

bool is_among(const IpAddress& address, std::span<const IpAddress> all) {
  return std::ranges::find(all, address) != all.end();
}

Verdict denied(const std::string& rule) {
  return {.allowed = false, .rule = rule, .why = "a rule denies it"};
}

Verdict refused(std::string why) { return {.allowed = false, .rule = {}, .why = std::move(why)}; }

Verdict allowed(const std::string& rule) { return {.allowed = true, .rule = rule, .why = {}}; }

std::string with_port(std::string host, std::uint16_t port) {
  return std::move(host) + ":" + std::to_string(port);
}

}  // namespace

bool Rules::Entry::holds(std::uint16_t port) const { return any_holds(ports, port); }

void Rules::Side::add(const NetRule& rule, Entry entry) {
  switch (rule.kind) {
    case NetRule::Kind::name:
      names[rule.name].push_back(std::move(entry));
      break;
    case NetRule::Kind::below:
      below[rule.name].push_back(std::move(entry));
      break;
    case NetRule::Kind::addresses:
      addresses.push_back(std::move(entry));
      break;
    case NetRule::Kind::localhost:
      localhost.push_back(std::move(entry));
      break;
  }
}

template <class F>
const Rules::Entry* Rules::Side::find(std::string_view canonical, F&& wanted) const {
  auto first_in = [&](const Names& among, std::string_view name) -> const Entry* {
    const auto entries = among.find(name);
    if (entries == among.end()) return nullptr;
    const auto at = std::ranges::find_if(entries->second, wanted);
    return at == entries->second.end() ? nullptr : &*at;
  };
  if (const Entry* entry = first_in(names, canonical)) return entry;
  for (std::size_t dot = canonical.find('.'); dot != canonical.npos;
       dot = canonical.find('.', dot + 1))
    if (const Entry* entry = first_in(below, canonical.substr(dot + 1))) return entry;
  return nullptr;
}

std::vector<PortRange> Rules::Side::ports_of(std::string_view canonical) const {
  std::vector<PortRange> ports;
  find(canonical, [&](const Entry& entry) {
    ports.insert(ports.end(), entry.ports.begin(), entry.ports.end());
    return false;  // go on
  });
  return ports;
}

Result<Rules> Rules::compile(const Policy& policy) {
  Rules rules;
  for (const std::string& text : policy.hosts) {
    NetRule rule = TRY(parse_net_rule(text));
    rules.allow_.add(rule, {rule.addresses, rule.allowed_ports(), text});
  }
  for (const std::string& text : policy.deny_hosts) {
    NetRule rule = TRY(parse_net_rule(text));
    rules.deny_.add(rule, {rule.addresses, {rule.denied_ports()}, text});
  }
  return rules;
}

Verdict Rules::name(std::string_view canonical) const {
  const Entry* any = allow_.find(canonical, [](const Entry&) { return true; });
  if (any == nullptr) return refused("no rule names it");
  const std::vector<PortRange> left =
      without(allow_.ports_of(canonical), deny_.ports_of(canonical));
  if (left.empty())
    return denied(deny_.find(canonical, [](const Entry&) { return true; })->written);
  const Entry* entry =
      allow_.find(canonical, [&](const Entry& one) { return one.holds(left.front().first); });
  return allowed(entry->written);
}

Verdict Rules::name(std::string_view canonical, std::uint16_t port) const {
  auto has_port = [&](const Entry& entry) { return entry.holds(port); };
  if (const Entry* entry = deny_.find(canonical, has_port)) return denied(entry->written);
  if (const Entry* entry = allow_.find(canonical, has_port)) return allowed(entry->written);
  if (allow_.find(canonical, [](const Entry&) { return true; }) == nullptr)
    return refused("no rule names it");
  return refused("no rule allows port " + std::to_string(port) + " of it");
}

// Without a port: on some port.
const Rules::Entry* Rules::allowing(const IpAddress& address,
                                    std::optional<std::uint16_t> port) const {
  if (is_loopback(address)) return nullptr;
  // A range of IPv6 addresses says nothing about the private IPv4 ones that some of
  // them lead to.
  const std::optional<IpAddress> inner = address.embedded();
  const bool inner_is_free =
      !inner || inner->scope() == Scope::global || allowing(*inner, port) != nullptr;
  for (const Entry& entry : allow_.addresses)
    if (entry.addresses.holds(address) && (!port || entry.holds(*port)) &&
        (inner_is_free || entry.addresses.is_single()))
      return &entry;
  return nullptr;
}

// Without a port: on every port.
const Rules::Entry* Rules::denying(const IpAddress& address,
                                   std::optional<std::uint16_t> port) const {
  const std::optional<IpAddress> inner = address.embedded();
  for (const Entry& entry : deny_.addresses) {
    const bool names = entry.addresses.holds(address) || (inner && entry.addresses.holds(*inner));
    if (names && (port ? entry.holds(*port) : entry.ports.front() == kAnyPort)) return &entry;
  }
  return nullptr;
}

Verdict Rules::address(const IpAddress& address, std::uint16_t port) const {
  if (const Entry* entry = denying(address, port)) return denied(entry->written);
  if (is_loopback(address)) return refused("the host's loopback is only reached as localhost:PORT");
  if (const Entry* entry = allowing(address, port)) return allowed(entry->written);
  if (allowing(address, std::nullopt) == nullptr) return refused("no rule names it");
  return refused("no rule allows port " + std::to_string(port) + " of it");
}

Verdict Rules::resolved(Verdict named, const IpAddress& address, std::optional<std::uint16_t> port,
                        std::span<const IpAddress> hosts_own) const {
  if (!named.allowed) return named;
  if (const Entry* entry = denying(address, port)) return denied(entry->written);
  const Scope scope = address.scope();
  const std::optional<IpAddress> inner = address.embedded();
  const bool own = is_among(address, hosts_own) || (inner && is_among(*inner, hosts_own));
  if (scope == Scope::global && !own) return named;
  if (const Entry* entry = allowing(address, port)) return allowed(entry->written);
  const std::string what =
      own ? "one of the host's own" : "a " + std::string(belljar::name(scope)) + " one";
  return refused("the name leads to " + address.text() + ", " + what +
                 ", and no rule names that address");
}

Verdict Rules::resolved(std::string_view canonical, const IpAddress& address,
                        std::span<const IpAddress> hosts_own) const {
  return resolved(name(canonical), address, std::nullopt, hosts_own);
}

Verdict Rules::connection(std::string_view canonical, const IpAddress& address, std::uint16_t port,
                          std::span<const IpAddress> hosts_own) const {
  return resolved(name(canonical, port), address, port, hosts_own);
}

bool Rules::localhost(std::uint16_t port) const { return localhost_verdict(port).allowed; }

Verdict Rules::localhost_verdict(std::uint16_t port) const {
  auto has_port = [&](const Entry& entry) { return entry.holds(port); };
  if (auto at = std::ranges::find_if(deny_.localhost, has_port); at != deny_.localhost.end())
    return denied(at->written);
  if (auto at = std::ranges::find_if(allow_.localhost, has_port); at != allow_.localhost.end())
    return allowed(at->written);
  return refused("no rule names it");
}

std::vector<PortRange> Rules::localhost_ports() const {
  std::vector<PortRange> ports, taken;
  for (const Entry& entry : allow_.localhost) ports.push_back(entry.ports.front());
  for (const Entry& entry : deny_.localhost) taken.push_back(entry.ports.front());
  return without(std::move(ports), taken);
}

std::string rule_that_would_allow(std::string_view name) { return std::string(name); }

std::string rule_that_would_allow(std::string_view name, std::uint16_t port) {
  return with_port(std::string(name), port);
}

std::string rule_that_would_allow(const IpAddress& address, std::uint16_t port) {
  if (is_loopback(address)) return with_port("localhost", port);
  return Endpoint{address, port}.text();
}

}  // namespace belljar::broker
