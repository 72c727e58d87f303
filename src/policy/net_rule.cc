#include "policy/net_rule.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "policy/keys.h"

namespace belljar {
namespace {

constexpr PortRange kAnyPort{};
constexpr PortRange kHttp{.first = 80, .last = 80};
constexpr PortRange kHttps{.first = 443, .last = 443};
constexpr std::string_view kLocalhost = "localhost";
constexpr std::string_view kBelow = "*.";

// However a group is nested, so many rules are not what a person meant.
constexpr std::size_t kMaxRules = 1000;

std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

// ---- parts of a rule ----
struct Parts {
  std::string_view host;  // without brackets, with "/LENGTH"
  std::string length;     // "/LENGTH" where it stood behind brackets
  std::optional<std::string_view> ports;
  bool bracketed = false;
};

Result<Parts> split_bracketed(std::string_view text) {
  const std::size_t close = text.find(']');
  if (close == text.npos) return fail(quoted(text) + ": the bracket is not closed");
  Parts parts{.host = text.substr(1, close - 1), .length = {}, .ports = {}, .bracketed = true};
  std::string_view rest = text.substr(close + 1);
  const std::size_t colon = rest.find(':');
  parts.length = rest.substr(0, colon);
  if (colon != rest.npos) parts.ports = rest.substr(colon + 1);
  if (!parts.length.empty() && !parts.length.starts_with('/'))
    return fail(quoted(text) + ": only /LENGTH or :PORT can follow the bracket");
  return parts;
}

Result<Parts> split(std::string_view text) {
  if (text.empty()) return fail("an empty rule");
  if (text.find("//") != text.npos)
    return fail(quoted(text) + " is no host", 0, "leave out the scheme and the path of a URL");
  if (text.starts_with('[')) return split_bracketed(text);
  const std::size_t colon = text.find(':');
  // More than one: IPv6 without brackets, and so without a port.
  if (colon == text.npos || text.find(':', colon + 1) != text.npos) return Parts{.host = text};
  return Parts{.host = text.substr(0, colon), .length = {}, .ports = text.substr(colon + 1)};
}

Result<PortRange> parse_ports(std::string_view text) {
  const std::size_t dash = text.find('-');
  const std::uint16_t first = TRY(parse_port(text.substr(0, dash)));
  if (dash == text.npos) return PortRange{.first = first, .last = first};
  const std::uint16_t last = TRY(parse_port(text.substr(dash + 1)));
  if (last < first)
    return fail("the ports " + quoted(text) + " are in the wrong order", 0,
                std::to_string(last) + "-" + std::to_string(first));
  return PortRange{.first = first, .last = last};
}

// ---- kinds of hosts ----
std::unexpected<Error> bad_range(std::string_view text) {
  const std::size_t slash = text.find('/');
  std::string hint = "ADDRESS/LENGTH, such as 10.1.0.0/16 or [2001:db8::]/32";
  unsigned length = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data() + slash + 1, end, length);
  if (const auto address = IpAddress::parse(text.substr(0, slash)); address && read.ptr == end)
    if (const auto range = Prefix::around(*address, length))
      hint = "did you mean " + range->text() + "?";
  return fail(quoted(text) + " is no range of addresses", 0, std::move(hint));
}

// Wholly: 0.0.0.0/0 is a fair thing to say, and does not mean the host.
bool is_loopback(const Prefix& addresses) {
  const Scope scope = addresses.base().scope();
  if (addresses.is_single()) return scope == Scope::loopback || scope == Scope::unspecified;
  return Prefix::around(IpAddress::v4(127, 0, 0, 0), 8)->holds(addresses) ||
         Prefix::around(IpAddress::v4(0, 0, 0, 0), 8)->holds(addresses);
}

Result<NetRule> address_rule(const Prefix& addresses, std::optional<PortRange> ports) {
  if (is_loopback(addresses))
    return fail(quoted(addresses.text()) + " is the host's own loopback", 0, "say localhost:PORT");
  return NetRule{
      .kind = NetRule::Kind::addresses, .name = {}, .addresses = addresses, .ports = ports};
}

Result<NetRule> name_rule(std::string_view host, std::optional<PortRange> ports) {
  const bool below = host.starts_with(kBelow);
  const std::string_view written = below ? host.substr(kBelow.size()) : host;
  if (written.find('*') != written.npos)
    return fail(
        quoted(host) + ": \"*\" can only be the whole first part of a name", 0,
        "*.example.com is what is below example.com; to reach every host: network = \"full\"");
  NetRule rule{.kind = below ? NetRule::Kind::below : NetRule::Kind::name,
               .name = TRY(canonical_name(written)),
               .addresses = {},
               .ports = ports};
  if (below || rule.name != kLocalhost) return rule;
  if (!ports)
    return fail("localhost needs a port: it is the host's own loopback", 0,
                "localhost:8080, or localhost:1-65535 for all of it");
  rule.kind = NetRule::Kind::localhost;
  return rule;
}

std::string ports_text(const PortRange& ports) {
  std::string text = std::to_string(ports.first);
  if (ports.last != ports.first) text += "-" + std::to_string(ports.last);
  return text;
}

// ---- groups ----
class Expansion {
 public:
  explicit Expansion(const NetGroups& groups) : groups_(groups) {}

  Status add(const std::vector<std::string>& rules) {
    for (const std::string& rule : rules) {
      if (is_group(rule))
        TRY(add_group(rule.substr(1)));
      else if (seen_.insert(rule).second)
        rules_.push_back(rule);
      if (rules_.size() > kMaxRules) return fail("too many rules about hosts");
    }
    return {};
  }

  std::vector<std::string> take() { return std::move(rules_); }

 private:
  Status add_group(const std::string& name) {
    const auto group = groups_.find(name);
    if (group == groups_.end()) return unknown(name);
    // To allow an empty group would be to allow nothing in particular.
    if (group->second.empty()) return fail("the group @" + name + " is empty");
    const auto [state, first] = groups_seen_.emplace(name, State::open);
    if (!first && state->second == State::open) return fail("the group @" + name + " holds itself");
    if (!first) return {};  // its rules are there already
    TRY(add(group->second));
    state->second = State::done;
    return {};
  }

  Status unknown(const std::string& name) const {
    std::vector<std::string_view> names;
    for (const auto& [known, rules] : groups_) names.push_back(known);
    const std::string_view near = nearest(name, names);
    return fail("there is no group @" + name, 0,
                near.empty() ? "[net_groups] in belljar.toml or your config.toml defines groups"
                             : "did you mean @" + std::string(near) + "?");
  }

  enum class State { open, done };

  const NetGroups& groups_;
  std::map<std::string, State> groups_seen_;
  std::set<std::string> seen_;
  std::vector<std::string> rules_;
};

}  // namespace

Result<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  if (!whole || text.starts_with('0'))
    return fail(quoted(text) + " is no port", 0, "a number from 1 to 65535");
  return port;
}

Result<Published> parse_published(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == text.npos) return fail(quoted(text) + " is not HOSTPORT:PORT");
  return Published{.host_port = TRY(parse_port(text.substr(0, colon))),
                   .port = TRY(parse_port(text.substr(colon + 1)))};
}

Result<NetRule> parse_net_rule(std::string_view text) {
  if (is_group(text)) return fail(quoted(text) + " is the name of a group, and not a rule");
  const Parts parts = TRY(split(text));
  std::optional<PortRange> ports;
  if (parts.ports) ports = TRY(parse_ports(*parts.ports));

  const std::string host = std::string(parts.host) + parts.length;
  if (const auto addresses = Prefix::parse(host)) {
    if (parts.bracketed && parts.host.find(':') == parts.host.npos)
      return fail(quoted(text) + ": brackets are for IPv6");
    return address_rule(*addresses, ports);
  }
  if (host.find('/') != host.npos) return bad_range(host);
  if (parts.bracketed || host.find(':') != host.npos)
    return fail(quoted(text) + " is no IPv6 address", 0, "HOST:PORT, or [IPV6]:PORT");
  return name_rule(host, ports);
}

std::vector<PortRange> NetRule::allowed_ports() const {
  if (ports) return {*ports};
  if (kind == Kind::addresses) return {kAnyPort};
  return {kHttp, kHttps};
}

PortRange NetRule::denied_ports() const { return ports.value_or(kAnyPort); }

bool NetRule::matches_name(std::string_view canonical) const {
  if (kind == Kind::name) return canonical == name;
  return kind == Kind::below && canonical.size() > name.size() + 1 && canonical.ends_with(name) &&
         canonical[canonical.size() - name.size() - 1] == '.';
}

bool NetRule::covers(const NetRule& other) const {
  const std::vector<PortRange> mine = allowed_ports();
  for (const PortRange& range : other.allowed_ports())
    if (std::ranges::none_of(mine, [&](const PortRange& own) { return own.holds(range); }))
      return false;
  switch (kind) {
    case Kind::name:
    case Kind::localhost:
      return kind == other.kind && name == other.name;
    case Kind::below:
      return (other.kind == Kind::below && name == other.name) ||
             ((other.kind == Kind::name || other.kind == Kind::below) && matches_name(other.name));
    case Kind::addresses:
      return other.kind == kind && addresses.holds(other.addresses);
  }
  return false;
}

std::string NetRule::text() const {
  std::string host = kind == Kind::below ? std::string(kBelow) + name : name;
  if (kind == Kind::addresses) {
    host = addresses.text();
    if (!addresses.base().is_v4() && ports) host.insert(std::min(host.find('/'), host.size()), "]");
    if (!addresses.base().is_v4() && ports) host.insert(0, "[");
  }
  return ports ? host + ":" + ports_text(*ports) : host;
}

bool is_group(std::string_view rule) { return rule.starts_with('@'); }

bool is_group_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  });
}

Result<std::vector<std::string>> expand_groups(const std::vector<std::string>& rules,
                                               const NetGroups& groups) {
  Expansion expansion(groups);
  TRY(expansion.add(rules));
  return expansion.take();
}

}  // namespace belljar
