#include "plan/explain_network.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace belljar {
namespace {

Policy policy() {
  Policy policy;
  policy.network = Network::hosts;
  policy.hosts = {"registry.example", "*.example.com:443", "10.1.0.0/16:5432", "localhost:8080",
                  "192.0.2.7"};
  policy.deny_hosts = {"bad.example.com", "10.1.2.0/24:1-9999"};
  policy.publish = {{.host_port = 8000, .port = 80}};
  return policy;
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

TEST(ExplainNetwork, every_rule_is_said_in_words) {
  EXPECT_EQ(
      explain_network(policy()),
      "  hosts: an own loopback, and outside only what these rules allow\n"
      "  allow  registry.example  (this name, ports 80 and 443)\n"
      "  allow  *.example.com:443  (every name below example.com, not itself, port 443)\n"
      "  allow  10.1.0.0/16:5432  (every address of this range, port 5432)\n"
      "  allow  localhost:8080  (the host's own loopback, port 8080)\n"
      "  allow  192.0.2.7  (this address, any port)\n"
      "  deny   bad.example.com  (this name, any port)\n"
      "  deny   10.1.2.0/24:1-9999  (every address of this range, ports 1 to 9999)\n"
      "  A name is checked twice: it must be allowed to be resolved, and the server that TLS\n"
      "  (SNI) or HTTP (Host) asks for must be an allowed name too. TLS without SNI is refused.\n"
      "  Other protocols go by the addresses that the name had when it was resolved.\n"
      "  A name that leads to a loopback, link-local, private or multicast address, or to one\n"
      "  of this host's own, is refused there unless a rule allows that address.\n"
      "  port 80 of the guest is the host's 127.0.0.1:8000\n");
}

TEST(ExplainNetwork, rules_are_data_too) {
  const boost::json::array rules = network_rules_to_json(policy());
  ASSERT_EQ(rules.size(), 7U);
  EXPECT_EQ(boost::json::serialize(rules[0]),
            R"({"rule":"registry.example","decides":"allow","host":"name",)"
            R"("ports":[{"first":80,"last":80},{"first":443,"last":443}]})");
  EXPECT_EQ(boost::json::serialize(published_to_json(policy())),
            R"([{"host_port":8000,"port":80}])");
}

TEST(ExplainNetwork, why_names_the_rule_and_the_flag) {
  auto why = [](const char* host) { return explain_host(policy(), host); };
  EXPECT_TRUE(has(why("Registry.Example:80"),
                  "registry.example:80: can be reached, by the rule registry.example; "
                  "--deny-net-hosts=registry.example:80 would deny it."));
  EXPECT_TRUE(has(why("registry.example"), "registry.example:443: can be reached"));
  EXPECT_TRUE(has(why("registry.example:8443"), "--allow-net=registry.example:8443 would allow"));
  EXPECT_TRUE(has(why("evilexample.com"), "no rule names it"));
  EXPECT_TRUE(has(why("bad.example.com"), "The rule bad.example.com of deny_net_hosts"));
  EXPECT_TRUE(has(why("10.1.2.3:5432"), "The rule 10.1.2.0/24:1-9999 of deny_net_hosts"));
  EXPECT_TRUE(has(why("10.1.3.3:5432"), "can be reached, by the rule 10.1.0.0/16:5432"));
  EXPECT_TRUE(has(why("[2001:db8::1]:80"), "--allow-net=[2001:db8::1]:80 would allow it"));
  EXPECT_TRUE(has(why("localhost:8080"), "can be reached, by the rule localhost:8080"));
  EXPECT_TRUE(has(why("localhost:80"), "--allow-net=localhost:80 would allow it"));
  EXPECT_TRUE(has(why("127.0.0.1:80"), "say localhost:PORT"));
  EXPECT_TRUE(has(why("*.example.com"), "one host"));
  EXPECT_TRUE(has(why("\x1b[2J.test"), "\\x1b"));
}

}  // namespace
}  // namespace belljar
