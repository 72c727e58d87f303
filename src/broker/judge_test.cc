#include "broker/judge.h"

#include <gtest/gtest.h>

namespace belljar::broker {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

Rules rules(std::vector<std::string> allow, std::vector<std::string> deny = {}) {
  Policy policy;
  policy.network = Network::hosts;
  policy.hosts = std::move(allow);
  policy.deny_hosts = std::move(deny);
  return *Rules::compile(policy);
}

Endpoint at(const char* address, std::uint16_t port) { return {*IpAddress::parse(address), port}; }

const Judge::Clock::time_point kNow = Judge::Clock::now();

TEST(Judge, an_address_by_its_rule) {
  const Rules of = rules({"203.0.113.0/24:5432"});
  const Judge judge(of);
  EXPECT_EQ(judge.decide(at("203.0.113.9", 5432), kNow).way, Way::address);
  EXPECT_EQ(judge.decide(at("203.0.113.9", 5433), kNow).way, Way::refused);
  EXPECT_EQ(judge.decide(at("203.0.114.9", 5432), kNow).way, Way::refused);
}

TEST(Judge, the_guests_own_loopback_is_its_own) {
  const Rules of = rules({"localhost:8080"});
  const Judge judge(of);
  EXPECT_EQ(judge.decide(at("127.0.0.1", 3000), kNow).way, Way::inside);
  EXPECT_EQ(judge.decide(at("::1", 3000), kNow).way, Way::inside);
  EXPECT_EQ(judge.decide(at("127.0.0.1", 8080), kNow).way, Way::localhost);
  EXPECT_EQ(judge.decide(at("::1", 8080), kNow).way, Way::localhost);
}

TEST(Judge, a_name_allows_the_addresses_given_out_for_it) {
  const Rules of = rules({"good.example"});
  Judge judge(of);
  EXPECT_EQ(judge.decide(at("203.0.113.5", 443), kNow).way, Way::refused);
  judge.pin("good.example", *IpAddress::parse("203.0.113.5"), seconds(1), kNow);
  const Decision decision = judge.decide(at("203.0.113.5", 443), kNow);
  EXPECT_EQ(decision.way, Way::name);
  EXPECT_EQ(decision.names, std::vector<std::string>{"good.example"});
  EXPECT_EQ(decision.verdict.rule, "good.example");
  // Another port is not what the rule says, and the report can say for whom.
  const Decision other = judge.decide(at("203.0.113.5", 22), kNow);
  EXPECT_EQ(other.way, Way::refused);
  EXPECT_EQ(other.names, std::vector<std::string>{"good.example"});
}

TEST(Judge, what_was_given_out_is_forgotten) {
  const Rules of = rules({"good.example"});
  Judge judge(of);
  judge.pin("good.example", *IpAddress::parse("203.0.113.5"), seconds(1), kNow);
  EXPECT_EQ(judge.decide(at("203.0.113.5", 443), kNow + hours(2)).way, Way::refused);
}

TEST(Judge, a_deny_wins_over_a_name) {
  const Rules of = rules({"good.example"}, {"203.0.113.0/24"});
  Judge judge(of);
  judge.pin("good.example", *IpAddress::parse("203.0.113.5"), seconds(1), kNow);
  EXPECT_EQ(judge.decide(at("203.0.113.5", 443), kNow).way, Way::refused);
}

TEST(Judge, a_name_does_not_lead_to_the_host) {
  const Rules of = rules({"good.example"});
  Judge judge(of);
  judge.set_own_addresses({*IpAddress::parse("203.0.113.5")});
  for (const char* address : {"203.0.113.5", "10.0.0.1", "169.254.169.254"}) {
    judge.pin("good.example", *IpAddress::parse(address), seconds(1), kNow);
    EXPECT_EQ(judge.decide(at(address, 443), kNow).way, Way::refused) << address;
  }
}

}  // namespace
}  // namespace belljar::broker
