#include "policy/net_rule.h"

#include <gtest/gtest.h>

namespace belljar {
namespace {

using namespace std::string_view_literals;
using Kind = NetRule::Kind;

NetRule rule(std::string_view text) {
  Result<NetRule> parsed = parse_net_rule(text);
  EXPECT_TRUE(parsed) << text << ": " << parsed.error().message();
  return parsed.value_or(NetRule{});
}

std::string refusal(std::string_view text) {
  Result<NetRule> parsed = parse_net_rule(text);
  return parsed ? "" : parsed.error().message();
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

TEST(NetRule, every_form_of_a_host_is_read) {
  EXPECT_EQ(rule("Example.com.").name, "example.com");
  EXPECT_EQ(rule("*.Example.com").kind, Kind::below);
  EXPECT_EQ(rule("*.Example.com").name, "example.com");
  EXPECT_EQ(rule("192.0.2.7").kind, Kind::addresses);
  EXPECT_EQ(rule("2001:db8::1").addresses, Prefix::parse("2001:db8::1"));
  EXPECT_EQ(rule("[2001:db8::1]").addresses, Prefix::parse("2001:db8::1"));
  EXPECT_EQ(rule("10.1.0.0/16:5432").addresses, Prefix::parse("10.1.0.0/16"));
  EXPECT_EQ(rule("[2001:db8::]/32:443").addresses, Prefix::parse("2001:db8::/32"));
  EXPECT_EQ(rule("2001:db8::/32").addresses, Prefix::parse("2001:db8::/32"));
  EXPECT_EQ(rule("localhost:8080").kind, Kind::localhost);
  EXPECT_EQ(rule("LOCALHOST.:8080").kind, Kind::localhost);
}

TEST(NetRule, text_is_canonical_and_parses_to_the_same) {
  constexpr std::pair<const char*, const char*> kCases[] = {
      {"Example.COM.", "example.com"},
      {"*.Bücher.example:443", "*.xn--bcher-kva.example:443"},
      {"example.com:8000-9000", "example.com:8000-9000"},
      {"example.com:80-80", "example.com:80"},
      {"10.1.0.0/16:5432", "10.1.0.0/16:5432"},
      {"10.1.2.3/32", "10.1.2.3"},
      {"::ffff:192.0.2.7", "192.0.2.7"},
      {"[2001:DB8::1]", "2001:db8::1"},
      {"[2001:db8::1]:443", "[2001:db8::1]:443"},
      {"[2001:db8::]/32:443", "[2001:db8::]/32:443"},
      {"[2001:db8::]/32", "2001:db8::/32"},
      {"localhost:1-65535", "localhost:1-65535"},
  };
  for (const auto& [written, text] : kCases) {
    EXPECT_EQ(rule(written).text(), text);
    EXPECT_EQ(rule(text), rule(written));
  }
}

TEST(NetRule, no_port_means_web_for_names_and_any_for_addresses) {
  const std::vector<PortRange> web = {{80, 80}, {443, 443}};
  EXPECT_EQ(rule("example.com").allowed_ports(), web);
  EXPECT_EQ(rule("*.example.com").allowed_ports(), web);
  EXPECT_EQ(rule("192.0.2.7").allowed_ports(), (std::vector<PortRange>{{1, 65535}}));
  EXPECT_EQ(rule("example.com:22").allowed_ports(), (std::vector<PortRange>{{22, 22}}));
  EXPECT_EQ(rule("example.com").denied_ports(), (PortRange{1, 65535}));
  EXPECT_EQ(rule("example.com:22").denied_ports(), (PortRange{22, 22}));
}

// Attack 30.
TEST(NetRule, what_is_below_a_name_is_not_what_ends_like_it) {
  const NetRule below = rule("*.example.com");
  for (const char* name : {"a.example.com", "a.b.example.com", "example.com.example.com"})
    EXPECT_TRUE(below.matches_name(name)) << name;
  for (const char* name : {"example.com", "evilexample.com", "example.com.evil", ".example.com",
                           "aexample.com", "a.example.com.evil", "com", ""})
    EXPECT_FALSE(below.matches_name(name)) << name;
  EXPECT_TRUE(rule("example.com").matches_name("example.com"));
  EXPECT_FALSE(rule("example.com").matches_name("a.example.com"));
  EXPECT_FALSE(rule("192.0.2.7").matches_name(""));
}

TEST(NetRule, what_is_no_rule_is_refused) {
  constexpr std::string_view kWrong[] = {"",
                                         ":80",
                                         "*",
                                         "*.",
                                         "*.*.com",
                                         "a*.com",
                                         "*a.com",
                                         "a.*.com",
                                         "**.com",
                                         "user@host",
                                         "http://example.com",
                                         "example.com/path",
                                         "example.com:",
                                         "example.com:0",
                                         "example.com:http",
                                         "example.com:65536",
                                         "example.com:99999999999",
                                         "example.com:080",
                                         "example.com:+80",
                                         "example.com:80-",
                                         "example.com:-80",
                                         "example.com:90-80",
                                         "example.com:80-90-100",
                                         "example.com:80 ",
                                         "example.com:*",
                                         "127.1",
                                         "2130706433",
                                         "0x7f.1:80",
                                         "127.1:80",
                                         "10.1.2.3/16",
                                         "10.0.0.0/33",
                                         "10.0.0.0/",
                                         "example.com/24",
                                         "[example.com]:80",
                                         "[192.0.2.7]:80",
                                         "[::1",
                                         "[2001:db8::1]443",
                                         "[2001:db8::1]x:443",
                                         "[fe80::1%eth0]:80",
                                         "fe80::1%eth0",
                                         "2001:db8::1::",
                                         "[]:80",
                                         "example.com\0:80"sv,
                                         "exa mple.com",
                                         "@group"};
  for (std::string_view text : kWrong) EXPECT_FALSE(parse_net_rule(text)) << text;
}

TEST(NetRule, a_refusal_says_what_to_write) {
  EXPECT_TRUE(has(refusal("localhost"), "localhost:8080"));
  EXPECT_TRUE(has(refusal("10.1.2.3/16"), "did you mean 10.1.0.0/16?"));
  EXPECT_TRUE(has(refusal("http://example.com"), "leave out the scheme"));
  EXPECT_TRUE(has(refusal("example.com:90-80"), "80-90"));
  EXPECT_TRUE(has(refusal("example.com:http"), "1 to 65535"));
  EXPECT_TRUE(has(refusal("*"), "network = \"full\""));
}

TEST(NetRule, the_hosts_loopback_has_one_name) {
  for (const char* text :
       {"127.0.0.1:80", "127.0.0.1", "127.9.9.9:80", "127.0.0.0/8:80", "127.0.0.0/16", "[::1]:80",
        "::1", "0.0.0.0:80", "[::]:80", "::", "::ffff:127.0.0.1", "[::127.0.0.1]:80",
        "64:ff9b::7f00:1", "[2002:7f00:1::]:80"})
    EXPECT_TRUE(has(refusal(text), "say localhost:PORT")) << text;
  for (const char* text : {"0.0.0.0/0", "::/0", "126.0.0.0/7"}) EXPECT_EQ(refusal(text), "");
}

TEST(NetRule, one_rule_covers_another) {
  auto covers = [](const char* wide, const char* narrow) {
    return rule(wide).covers(rule(narrow));
  };
  EXPECT_TRUE(covers("example.com", "example.com:443"));
  EXPECT_TRUE(covers("*.example.com", "a.example.com"));
  EXPECT_TRUE(covers("*.example.com", "*.a.example.com"));
  EXPECT_TRUE(covers("*.example.com", "*.example.com:443"));
  EXPECT_TRUE(covers("10.0.0.0/8", "10.1.0.0/16:5432"));
  EXPECT_TRUE(covers("localhost:8000-9000", "localhost:8080"));
  EXPECT_FALSE(covers("example.com:443", "example.com"));
  EXPECT_FALSE(covers("*.example.com", "example.com"));
  EXPECT_FALSE(covers("a.example.com", "*.example.com"));
  EXPECT_FALSE(covers("10.1.0.0/16", "10.0.0.0/8"));
  EXPECT_FALSE(covers("10.0.0.0/8:5432", "10.1.0.0/16"));
  EXPECT_FALSE(covers("0.0.0.0/0", "example.com"));
  EXPECT_FALSE(covers("0.0.0.0/0", "localhost:80"));
}

TEST(NetRule, published_ports_are_a_pair) {
  EXPECT_EQ(parse_published("8080:80").value(), (Published{.host_port = 8080, .port = 80}));
  for (const char* text : {"", "8080", "8080:", ":80", "0:80", "8080:0", "8080:65536", "a:b",
                           "127.0.0.1:8080:80", "8080:80/tcp", " 8080:80", "08080:80"})
    EXPECT_FALSE(parse_published(text)) << text;
}

TEST(NetRule, groups_are_expanded_in_place) {
  const NetGroups groups = {{"npm", {"registry.npmjs.org", "@cdn"}},
                            {"cdn", {"*.cdn.example:443"}},
                            {"all", {"@npm", "@cdn", "a.test"}}};
  using Rules = std::vector<std::string>;
  EXPECT_EQ(expand_groups({"b.test", "@npm", "c.test"}, groups).value(),
            (Rules{"b.test", "registry.npmjs.org", "*.cdn.example:443", "c.test"}));
  EXPECT_EQ(expand_groups({"@all", "a.test"}, groups).value(),
            (Rules{"registry.npmjs.org", "*.cdn.example:443", "a.test"}));
}

TEST(NetRule, a_group_that_is_not_there_or_holds_itself_or_nothing_is_refused) {
  const NetGroups groups = {
      {"npm", {"a.test"}}, {"x", {"@y"}}, {"y", {"b.test", "@x"}}, {"none", {}}};
  EXPECT_TRUE(has(expand_groups({"@none"}, groups).error().message(), "is empty"));
  EXPECT_TRUE(has(expand_groups({"@nmp"}, groups).error().message(), "did you mean @npm?"));
  EXPECT_TRUE(has(expand_groups({"@zzzzzz"}, groups).error().message(), "[net_groups]"));
  EXPECT_TRUE(has(expand_groups({"@x"}, groups).error().message(), "holds itself"));
}

TEST(NetRule, groups_of_groups_cost_no_more_than_their_rules) {
  NetGroups groups = {{"0", {"a.test"}}};
  for (int i = 1; i < 500; ++i) {
    const std::string below = "@" + std::to_string(i - 1);
    groups[std::to_string(i)] = {below, below, below};
  }
  EXPECT_EQ(expand_groups({"@499"}, groups).value(), std::vector<std::string>{"a.test"});
}

}  // namespace
}  // namespace belljar
