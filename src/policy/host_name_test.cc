#include "policy/host_name.h"

#include <gtest/gtest.h>

namespace belljar {
namespace {

using namespace std::string_view_literals;

std::string canonical(std::string_view name) {
  return canonical_name(name).value_or("(" + std::string(name) + " has none)");
}

TEST(HostName, case_and_the_last_dot_do_not_matter) {
  for (const char* name : {"example.com", "EXAMPLE.com", "Example.Com.", "example.com."})
    EXPECT_EQ(canonical(name), "example.com");
}

TEST(HostName, every_script_has_one_form) {
  for (const char* name : {"bücher.example", "BÜCHER.example", "bu\u0308cher.example",
                           "xn--bcher-kva.example", "XN--BCHER-KVA.EXAMPLE."})
    EXPECT_EQ(canonical(name), "xn--bcher-kva.example") << name;
  EXPECT_EQ(canonical("ｅｘａｍｐｌｅ．com"), "example.com");
  EXPECT_EQ(canonical("例え。テスト"), "xn--r8jz45g.xn--zckzah");
  EXPECT_EQ(canonical("faß.example"), "xn--fa-hia.example");  // not fass
  EXPECT_NE(canonical("еxample.com"), "example.com");         // a Cyrillic first letter
}

TEST(HostName, names_that_exist_have_a_form) {
  for (const char* name :
       {"localhost", "a", "_dmarc.example.com", "r3---sn-4g5e6nez.googlevideo.com", "3com.com",
        "1.2.3.4.in-addr.arpa", "a.b.c.d.e.f.example", "0x7f.example", "x--y.example"})
    EXPECT_EQ(canonical(name), name);
  const std::string label(63, 'a');
  const std::string longest = label + "." + label + "." + label + "." + std::string(61, 'b');
  EXPECT_EQ(canonical(longest), longest);
  EXPECT_FALSE(canonical_name(longest + "b"));
  EXPECT_FALSE(canonical_name(label + "a.example"));
}

// Attack 30.
TEST(HostName, what_is_no_name_is_refused) {
  constexpr std::string_view kWrong[] = {"",
                                         ".",
                                         "..",
                                         ".example.com",
                                         "example..com",
                                         "example.com..",
                                         "user@example.com",
                                         "user:pass@example.com",
                                         "example.com\0.evil.example"sv,
                                         "example.com\0"sv,
                                         "a b.example",
                                         "example.com ",
                                         "\texample.com",
                                         "example.com\n",
                                         "example%2ecom",
                                         "%65xample.com",
                                         "example.com:80",
                                         "example.com/",
                                         "-a.example",
                                         "a-.example",
                                         "exa\\mple.com",
                                         "[example.com]",
                                         "*.example.com",
                                         "a,b.example",
                                         "\xff\xfe.example",
                                         "\xc0\xae.example",
                                         "\xed\xa0\x80.example"};
  for (std::string_view name : kWrong) EXPECT_FALSE(canonical_name(name)) << name;
}

TEST(HostName, what_some_take_for_an_address_is_refused) {
  for (const char* name :
       {"127.0.0.1", "127.0.0.1.", "127.1", "2130706433", "0x7f.1", "0x7f000001", "0X7F000001",
        "0177.0.0.1", "017700000001", "1.2.3", "0x7f.0x0.0x0.0x1", "0x", "example.0x10",
        "example.1", "１２７.０.０.１", "127。0。0。1", "::1", "①②⑦.0.0.1"})
    EXPECT_FALSE(canonical_name(name)) << name;
}

TEST(HostName, from_the_wire_only_ascii_counts) {
  EXPECT_EQ(canonical_wire_name("EXAMPLE.com.").value(), "example.com");
  EXPECT_EQ(canonical_wire_name("xn--bcher-kva.example").value(), "xn--bcher-kva.example");
  EXPECT_FALSE(canonical_wire_name("bücher.example"));
  EXPECT_FALSE(canonical_wire_name("ｅxample.com"));
  EXPECT_FALSE(canonical_wire_name("example.com\0"sv));
}

TEST(HostName, a_canonical_name_is_its_own) {
  for (const char* name : {"Example.com.", "BÜCHER.example", "例え。テスト", "_a.B"}) {
    const std::string once = canonical(name);
    EXPECT_EQ(canonical(once), once);
    EXPECT_EQ(canonical_wire_name(once).value(), once);
  }
}

}  // namespace
}  // namespace belljar
