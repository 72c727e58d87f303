#include "broker/rules.h"

#include <gtest/gtest.h>

#include <chrono>

namespace belljar::broker {
namespace {

Rules rules(std::vector<std::string> hosts, std::vector<std::string> deny = {}) {
  Policy policy;
  policy.network = Network::hosts;
  policy.hosts = std::move(hosts);
  policy.deny_hosts = std::move(deny);
  Result<Rules> compiled = Rules::compile(policy);
  EXPECT_TRUE(compiled) << compiled.error().message();
  return compiled.value_or(Rules{});
}

IpAddress at(std::string_view text) { return IpAddress::parse(text).value(); }

bool has(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

TEST(Rules, a_name_is_allowed_by_its_rule_and_no_other) {
  const Rules some = rules({"Example.com", "*.Example.org:8443", "10.0.0.0/8"});
  EXPECT_EQ(some.name("example.com", 443), (Verdict{true, "Example.com", ""}));
  EXPECT_EQ(some.name("example.com", 80), (Verdict{true, "Example.com", ""}));
  EXPECT_EQ(some.name("a.b.example.org", 8443), (Verdict{true, "*.Example.org:8443", ""}));
  EXPECT_EQ(some.name("example.net", 443), (Verdict{false, "", "no rule names it"}));
  EXPECT_EQ(some.name("example.com", 22), (Verdict{false, "", "no rule allows port 22 of it"}));
  EXPECT_FALSE(some.name("a.example.org", 443).allowed);
}

// Attack 30.
TEST(Rules, what_looks_like_the_name_is_not_the_name) {
  const Rules some = rules({"*.example.com", "bücher.example"});
  EXPECT_TRUE(some.name("a.example.com").allowed);
  EXPECT_TRUE(some.name("xn--bcher-kva.example").allowed);
  for (const char* name :
       {"example.com", "evilexample.com", "example.com.evil", "a.example.com.evil", "a.example.co",
        "xn--example-.com", "bucher.example", "localhost", "com", ""})
    EXPECT_FALSE(some.name(name).allowed) << name;
}

TEST(Rules, a_deny_wins) {
  const Rules some = rules({"*.example.com", "example.com", "10.0.0.0/8", "localhost:1-9999"},
                           {"bad.example.com", "*.worse.example.com", "example.com:80",
                            "10.1.0.0/16", "10.2.0.1:25", "localhost:22"});
  EXPECT_EQ(some.name("bad.example.com", 443),
            (Verdict{false, "bad.example.com", "a rule denies it"}));
  EXPECT_EQ(some.name("bad.example.com").rule, "bad.example.com");
  EXPECT_FALSE(some.name("bad.example.com").allowed);
  EXPECT_TRUE(some.name("good.example.com", 443).allowed);
  EXPECT_FALSE(some.name("a.worse.example.com").allowed);
  EXPECT_TRUE(some.name("worse.example.com").allowed);
  EXPECT_TRUE(some.name("example.com").allowed);  // 443 is left
  EXPECT_FALSE(some.name("example.com", 80).allowed);
  EXPECT_TRUE(some.name("example.com", 443).allowed);
  EXPECT_EQ(some.address(at("10.1.2.3"), 443).rule, "10.1.0.0/16");
  EXPECT_FALSE(some.address(at("10.1.2.3"), 443).allowed);
  EXPECT_TRUE(some.address(at("10.2.0.1"), 443).allowed);
  EXPECT_FALSE(some.address(at("10.2.0.1"), 25).allowed);
  EXPECT_FALSE(some.localhost(22));
  EXPECT_TRUE(some.localhost(23));
}

TEST(Rules, a_name_with_every_allowed_port_denied_is_not_resolved) {
  const Rules some =
      rules({"a.test", "b.test:1-100"}, {"a.test:443", "a.test:1-80", "b.test:2-99"});
  EXPECT_FALSE(some.name("a.test").allowed);
  EXPECT_TRUE(some.name("b.test").allowed);
  EXPECT_TRUE(some.name("b.test", 100).allowed);
}

TEST(Rules, addresses_go_by_their_own_rules) {
  const Rules some = rules({"example.com", "10.1.0.0/16:5432", "[2001:db8::]/32:443", "192.0.2.7"});
  EXPECT_EQ(some.address(at("10.1.2.3"), 5432), (Verdict{true, "10.1.0.0/16:5432", ""}));
  EXPECT_TRUE(some.address(at("::ffff:10.1.2.3"), 5432).allowed);
  EXPECT_TRUE(some.address(at("192.0.2.7"), 12345).allowed);
  EXPECT_TRUE(some.address(at("2001:db8:1::1"), 443).allowed);
  EXPECT_EQ(some.address(at("10.1.2.3"), 5433).why, "no rule allows port 5433 of it");
  EXPECT_EQ(some.address(at("10.2.0.1"), 5432).why, "no rule names it");
  EXPECT_FALSE(some.address(at("2001:db9::1"), 443).allowed);
}

TEST(Rules, no_range_reaches_the_hosts_loopback) {
  const Rules everything = rules({"0.0.0.0/0", "::/0"});
  EXPECT_TRUE(everything.address(at("8.8.8.8"), 53).allowed);
  EXPECT_TRUE(everything.address(at("192.168.1.1"), 53).allowed);  // it is what was said
  for (const char* text : {"127.0.0.1", "0.0.0.0", "0.1.2.3", "::1", "::", "::ffff:127.0.0.1",
                           "::127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::"}) {
    const Verdict verdict = everything.address(at(text), 80);
    EXPECT_FALSE(verdict.allowed) << text;
    EXPECT_TRUE(has(verdict.why, "localhost:PORT")) << text;
    EXPECT_FALSE(everything.resolved("a.test", at(text), {}).allowed) << text;
  }
}

TEST(Rules, an_ipv6_range_does_not_lead_to_private_ipv4) {
  const Rules six = rules({"::/0", "64:ff9b::a00:2"});
  EXPECT_TRUE(six.address(at("64:ff9b::8.8.8.8"), 443).allowed);
  EXPECT_FALSE(six.address(at("64:ff9b::a00:1"), 443).allowed);
  EXPECT_FALSE(six.address(at("2002:a9fe:a9fe::"), 80).allowed);
  EXPECT_TRUE(six.address(at("64:ff9b::a00:2"), 443).allowed);  // named itself
  EXPECT_TRUE(rules({"::/0", "10.0.0.0/8"}).address(at("64:ff9b::a00:1"), 443).allowed);
  EXPECT_FALSE(rules({"::/0"}, {"8.8.8.8"}).address(at("64:ff9b::8.8.8.8"), 443).allowed);
}

// Attack 31.
TEST(Rules, a_name_does_not_lead_inside) {
  const Rules some = rules({"evil.test"});
  EXPECT_EQ(some.resolved("evil.test", at("203.0.113.7"), {}), (Verdict{true, "evil.test", ""}));
  for (const char* text : {"127.0.0.1",
                           "0.0.0.0",
                           "169.254.169.254",
                           "10.0.0.1",
                           "172.16.0.1",
                           "192.168.0.1",
                           "100.64.0.1",
                           "224.0.0.1",
                           "255.255.255.255",
                           "240.0.0.1",
                           "::1",
                           "::",
                           "fe80::1",
                           "fd00:ec2::254",
                           "ff02::1",
                           "::ffff:10.0.0.1",
                           "64:ff9b::a9fe:a9fe",
                           "2002:a00:1::",
                           "::10.0.0.1",
                           "168.63.129.16"}) {
    const Verdict verdict = some.resolved("evil.test", at(text), {});
    EXPECT_FALSE(verdict.allowed) << text;
    EXPECT_TRUE(has(verdict.why, at(text).text())) << verdict.why;
  }
  EXPECT_TRUE(has(some.resolved("evil.test", at("169.254.169.254"), {}).why, "link-local"));
}

TEST(Rules, a_name_does_not_lead_to_the_host_itself) {
  const Rules some = rules({"evil.test"});
  const IpAddress own[] = {at("203.0.113.7"), at("2001:db8::7")};
  EXPECT_FALSE(some.resolved("evil.test", own[0], own).allowed);
  EXPECT_FALSE(some.resolved("evil.test", own[1], own).allowed);
  EXPECT_FALSE(some.resolved("evil.test", at("64:ff9b::203.0.113.7"), own).allowed);
  EXPECT_TRUE(some.resolved("evil.test", at("203.0.113.8"), own).allowed);
  EXPECT_TRUE(has(some.resolved("evil.test", own[0], own).why, "the host's own"));
}

TEST(Rules, a_rule_for_the_address_lets_a_name_lead_inside) {
  const Rules some = rules({"db.test:5432", "web.test", "10.1.0.0/16:5432", "203.0.113.7"});
  const IpAddress own[] = {at("203.0.113.7")};
  EXPECT_EQ(some.resolved("db.test", at("10.1.2.3"), {}), (Verdict{true, "10.1.0.0/16:5432", ""}));
  EXPECT_FALSE(some.resolved("db.test", at("10.2.0.1"), {}).allowed);
  EXPECT_TRUE(some.connection("db.test", at("10.1.2.3"), 5432, {}).allowed);
  EXPECT_TRUE(some.resolved("web.test", own[0], own).allowed);
  // The address is named for another port only.
  EXPECT_FALSE(some.connection("web.test", at("10.1.2.3"), 443, {}).allowed);
}

TEST(Rules, a_denied_address_is_denied_under_every_name) {
  const Rules some = rules({"a.test:1-65535"}, {"203.0.113.0/24", "198.51.100.7:25"});
  EXPECT_EQ(some.resolved("a.test", at("203.0.113.7"), {}),
            (Verdict{false, "203.0.113.0/24", "a rule denies it"}));
  EXPECT_FALSE(some.resolved("a.test", at("64:ff9b::203.0.113.7"), {}).allowed);
  EXPECT_TRUE(some.resolved("a.test", at("198.51.100.7"), {}).allowed);
  EXPECT_FALSE(some.connection("a.test", at("198.51.100.7"), 25, {}).allowed);
  EXPECT_TRUE(some.connection("a.test", at("198.51.100.7"), 26, {}).allowed);
}

TEST(Rules, what_a_name_that_is_not_allowed_resolves_to_is_not_either) {
  const Rules some = rules({"a.test", "203.0.113.7"});
  EXPECT_FALSE(some.resolved("b.test", at("203.0.113.7"), {}).allowed);
  EXPECT_FALSE(some.connection("a.test", at("203.0.113.8"), 22, {}).allowed);
}

TEST(Rules, localhost_is_its_ports) {
  const Rules some = rules({"localhost:8080", "localhost:9000-9010"}, {"localhost:9005"});
  EXPECT_TRUE(some.localhost(8080));
  EXPECT_EQ(some.localhost_verdict(9000).rule, "localhost:9000-9010");
  EXPECT_FALSE(some.localhost(9005));
  EXPECT_FALSE(some.localhost(80));
  EXPECT_EQ(some.localhost_ports(),
            (std::vector<PortRange>{{8080, 8080}, {9000, 9004}, {9006, 9010}}));
  EXPECT_FALSE(some.name("localhost").allowed);
  EXPECT_FALSE(some.address(at("127.0.0.1"), 8080).allowed);
}

TEST(Rules, the_rule_that_is_proposed_would_do) {
  EXPECT_EQ(rule_that_would_allow("registry.example", 8443), "registry.example:8443");
  EXPECT_EQ(rule_that_would_allow("registry.example"), "registry.example");
  EXPECT_EQ(rule_that_would_allow(at("10.1.2.3"), 5432), "10.1.2.3:5432");
  EXPECT_EQ(rule_that_would_allow(at("127.0.0.1"), 8080), "localhost:8080");
  for (const char* text : {"10.1.2.3", "2001:db8::1", "64:ff9b::a00:1"})
    EXPECT_TRUE(rules({rule_that_would_allow(at(text), 99)}).address(at(text), 99).allowed) << text;
  EXPECT_TRUE(rules({rule_that_would_allow("a.test", 99)}).name("a.test", 99).allowed);
}

TEST(Rules, a_rule_that_cannot_be_read_is_an_error) {
  Policy policy;
  policy.hosts = {"a.test", "@group"};
  EXPECT_FALSE(Rules::compile(policy));
  policy.hosts = {"a.test"};
  policy.deny_hosts = {"127.0.0.1"};
  EXPECT_FALSE(Rules::compile(policy));
}

TEST(Rules, hundreds_of_them_are_asked_quickly) {
  std::vector<std::string> hosts;
  for (int i = 0; i < 500; ++i) {
    hosts.push_back("*.n" + std::to_string(i) + ".example.com");
    hosts.push_back("10." + std::to_string(i / 250) + "." + std::to_string(i % 250) + ".0/24");
  }
  const Rules many = rules(hosts);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(many.name("a.b.n499.example.com", 443).allowed);
    EXPECT_TRUE(many.address(at("10.1.249.7"), 443).allowed);
  }
  // Both together, unoptimised: far below what a connect costs.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(1000));
}

}  // namespace
}  // namespace belljar::broker
