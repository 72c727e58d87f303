#include "base/address.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

namespace belljar {
namespace {

IpAddress at(std::string_view text) {
  const std::optional<IpAddress> address = IpAddress::parse(text);
  EXPECT_TRUE(address) << text;
  return address.value_or(IpAddress());
}

TEST(Address, both_families_are_read_and_written) {
  for (const char* text : {"0.0.0.0", "127.0.0.1", "255.255.255.255", "192.0.2.7", "::", "::1",
                           "2001:db8::1", "fe80::1", "64:ff9b::102:304"})
    EXPECT_EQ(at(text).text(), text);
  EXPECT_EQ(at("2001:DB8:0:0:0:0:0:1").text(), "2001:db8::1");
}

TEST(Address, one_address_has_one_form) {
  EXPECT_EQ(at("::ffff:192.0.2.7"), at("192.0.2.7"));
  EXPECT_EQ(at("::ffff:c000:207").text(), "192.0.2.7");
  EXPECT_TRUE(at("::ffff:c000:207").is_v4());
  EXPECT_FALSE(at("::c000:207").is_v4());
}

TEST(Address, what_only_inet_aton_reads_is_no_address) {
  using namespace std::string_view_literals;
  constexpr std::string_view kWrong[] = {
      "",           "127.1",        "127.0.1",    "2130706433",    "0x7f.1",
      "0x7f000001", "0177.0.0.1",   "127.0.0.01", "127.0.0.1 ",    " 127.0.0.1",
      "127.0.0.1.", "127.0.0.256",  "1.2.3.4.5",  "1.2.3.-4",      "+1.2.3.4",
      "::1%lo",     "fe80::1%eth0", "[::1]",      ":::",           "1::2::3",
      "12345::",    "::g",          "::1/128",    "127.0.0.1\0"sv, "127.0.0.1\0.example"sv,
      "１27.0.0.1"};
  for (std::string_view text : kWrong) EXPECT_FALSE(IpAddress::parse(text)) << text;
}

TEST(Address, scopes_are_those_of_the_registries) {
  constexpr std::pair<const char*, Scope> kCases[] = {
      {"0.0.0.0", Scope::unspecified},
      {"0.1.2.3", Scope::unspecified},
      {"127.0.0.1", Scope::loopback},
      {"127.255.255.254", Scope::loopback},
      {"169.254.169.254", Scope::link_local},
      {"168.63.129.16", Scope::link_local},
      {"10.0.0.1", Scope::private_use},
      {"172.16.0.1", Scope::private_use},
      {"172.31.255.255", Scope::private_use},
      {"172.32.0.1", Scope::global},
      {"192.168.1.1", Scope::private_use},
      {"100.64.0.1", Scope::private_use},
      {"100.100.100.200", Scope::private_use},
      {"100.128.0.1", Scope::global},
      {"192.0.0.192", Scope::reserved},
      {"198.18.0.1", Scope::private_use},
      {"224.0.0.251", Scope::multicast},
      {"239.255.255.250", Scope::multicast},
      {"240.0.0.1", Scope::reserved},
      {"255.255.255.255", Scope::broadcast},
      {"8.8.8.8", Scope::global},
      {"203.0.113.7", Scope::global},
      {"::", Scope::unspecified},
      {"::1", Scope::loopback},
      {"fe80::1", Scope::link_local},
      {"febf::1", Scope::link_local},
      {"fec0::1", Scope::private_use},
      {"fc00::1", Scope::private_use},
      {"fd00:ec2::254", Scope::private_use},
      {"ff02::fb", Scope::multicast},
      {"2001::1", Scope::reserved},
      {"2606:4700::1111", Scope::global},
      {"2001:db8::1", Scope::global},
      {"64:ff9b:1::1", Scope::reserved},
      {"100::1", Scope::reserved},
      {"4000::1", Scope::reserved},
  };
  for (const auto& [text, scope] : kCases) EXPECT_EQ(at(text).scope(), scope) << text;
}

// Attack 31 in its IPv6 clothes.
TEST(Address, an_embedded_address_is_judged) {
  constexpr std::pair<const char*, const char*> kCases[] = {
      {"64:ff9b::7f00:1", "127.0.0.1"},  {"64:ff9b::a9fe:a9fe", "169.254.169.254"},
      {"2002:a00:1::", "10.0.0.1"},      {"2002:7f00:1:1::5", "127.0.0.1"},
      {"::127.0.0.1", "127.0.0.1"},      {"::192.168.0.1", "192.168.0.1"},
      {"::ffff:0:10.0.0.1", "10.0.0.1"}, {"64:ff9b::8.8.8.8", "8.8.8.8"},
  };
  for (const auto& [text, inner] : kCases) {
    EXPECT_EQ(at(text).embedded(), at(inner)) << text;
    EXPECT_EQ(at(text).scope(), at(inner).scope()) << text;
  }
  for (const char* text : {"::", "::1", "10.0.0.1", "2001:db8::1"})
    EXPECT_FALSE(at(text).embedded()) << text;
}

TEST(Address, endpoints_survive_a_sockaddr) {
  for (const char* text : {"192.0.2.7", "2001:db8::1", "::1"}) {
    const Endpoint endpoint{at(text), 8443};
    const SocketAddress address = endpoint.to_socket_address();
    EXPECT_EQ(Endpoint::from(address.storage, address.size), endpoint);
    EXPECT_FALSE(Endpoint::from(address.storage, address.size - 1));
  }
  // As an AF_INET6 socket sees an IPv4 peer.
  sockaddr_in6 mapped{};
  mapped.sin6_family = AF_INET6;
  mapped.sin6_port = htons(80);
  std::ranges::copy(at("192.0.2.7").bytes(), mapped.sin6_addr.s6_addr);
  sockaddr_storage storage{};
  std::memcpy(&storage, &mapped, sizeof mapped);
  EXPECT_EQ(Endpoint::from(storage, sizeof mapped), (Endpoint{at("192.0.2.7"), 80}));
  storage.ss_family = AF_UNIX;
  EXPECT_FALSE(Endpoint::from(storage, sizeof storage));
}

TEST(Address, endpoints_are_keys_and_have_a_text) {
  std::unordered_map<Endpoint, int> map;
  map[{at("192.0.2.7"), 80}] = 1;
  map[{at("192.0.2.7"), 81}] = 2;
  map[{at("2001:db8::1"), 80}] = 3;
  EXPECT_EQ((map[{at("::ffff:192.0.2.7"), 80}]), 1);
  EXPECT_EQ(map.size(), 3U);
  EXPECT_EQ((Endpoint{at("192.0.2.7"), 80}.text()), "192.0.2.7:80");
  EXPECT_EQ((Endpoint{at("2001:db8::1"), 443}.text()), "[2001:db8::1]:443");
}

TEST(Prefix, holds_what_begins_alike) {
  const auto ten = Prefix::parse("10.1.0.0/16").value();
  EXPECT_TRUE(ten.holds(at("10.1.255.255")));
  EXPECT_FALSE(ten.holds(at("10.2.0.0")));
  EXPECT_TRUE(Prefix::parse("2001:db8::/33")->holds(at("2001:db8:7fff::1")));
  EXPECT_FALSE(Prefix::parse("2001:db8::/33")->holds(at("2001:db8:8000::1")));
  EXPECT_TRUE(Prefix::parse("192.0.2.7")->holds(at("192.0.2.7")));
  EXPECT_FALSE(Prefix::parse("192.0.2.7")->holds(at("192.0.2.6")));
}

TEST(Prefix, everything_of_one_family_is_nothing_of_the_other) {
  EXPECT_TRUE(Prefix::parse("0.0.0.0/0")->holds(at("192.0.2.7")));
  EXPECT_FALSE(Prefix::parse("0.0.0.0/0")->holds(at("2001:db8::1")));
  EXPECT_TRUE(Prefix::parse("::/0")->holds(at("2001:db8::1")));
  EXPECT_FALSE(Prefix::parse("::/0")->holds(at("192.0.2.7")));
}

TEST(Prefix, ranges_hold_ranges) {
  EXPECT_TRUE(Prefix::parse("10.0.0.0/8")->holds(*Prefix::parse("10.1.0.0/16")));
  EXPECT_FALSE(Prefix::parse("10.1.0.0/16")->holds(*Prefix::parse("10.0.0.0/8")));
  EXPECT_FALSE(Prefix::parse("::/0")->holds(*Prefix::parse("10.0.0.0/8")));
}

TEST(Prefix, text_is_read_back_and_nonsense_is_not) {
  for (const char* text : {"10.1.0.0/16", "0.0.0.0/0", "::/0", "2001:db8::/32", "192.0.2.7"})
    EXPECT_EQ(Prefix::parse(text)->text(), text);
  for (const char* text : {"10.1.0.0/15", "10.1.2.3/16", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/08",
                           "10.0.0.0/-1", "10.0.0.0/8/8", "::/129", "/8", "10/8",
                           "::ffff:10.0.0.0/8", "::ffff:10.0.0.0/104", "::1/127x"})
    EXPECT_FALSE(Prefix::parse(text)) << text;
}

}  // namespace
}  // namespace belljar
