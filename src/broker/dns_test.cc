#include "broker/dns.h"

#include <gtest/gtest.h>

namespace belljar::broker {
namespace {

using namespace std::string_literals;

Bytes bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string number(unsigned value) {
  return {static_cast<char>(value >> 8U & 0xffU), static_cast<char>(value & 0xffU)};
}

// What a packet is made of; a plain query for www.example unless told otherwise.
struct Query {
  unsigned flags = 0x0100;
  std::string counts = "\0\1\0\0\0\0\0\0"s;
  std::string name = "\3www\7example\0"s;
  unsigned type = kDnsA;
  unsigned klass = 1;
  std::string rest = {};

  std::string question() const { return name + number(type) + number(klass); }
  std::string text() const { return number(0x1234) + number(flags) + counts + question() + rest; }
};

constexpr std::string_view kCountsWithOpt("\0\1\0\0\0\0\0\1", 8);

std::string opt(unsigned size, unsigned version = 0, unsigned flags = 0) {
  return "\0\0\x29"s + number(size) + "\0"s + static_cast<char>(version) + number(flags) + "\0\0"s;
}

DnsQuestion good(const Query& query) {
  auto question = read_dns_query(bytes(query.text()));
  EXPECT_TRUE(question) << question.error().reason;
  return question.value_or(DnsQuestion{});
}

DnsError bad(const Query& query) {
  auto question = read_dns_query(bytes(query.text()));
  EXPECT_FALSE(question);
  return question ? DnsError{} : question.error();
}

std::string text(const std::vector<std::byte>& packet) { return std::string(as_text(packet)); }

unsigned at(const std::vector<std::byte>& packet, std::size_t offset) {
  Reader reader(packet);
  reader.take(offset);
  return reader.u16();
}
unsigned flags(const std::vector<std::byte>& packet) { return at(packet, 2); }
unsigned answers(const std::vector<std::byte>& packet) { return at(packet, 6); }
unsigned authorities(const std::vector<std::byte>& packet) { return at(packet, 8); }
unsigned additional(const std::vector<std::byte>& packet) { return at(packet, 10); }
constexpr unsigned kTruncatedBit = 0x0200;

const std::vector<IpAddress> kAddresses = {IpAddress::v4(192, 0, 2, 1), IpAddress::v4(192, 0, 2, 2),
                                           *IpAddress::parse("2001:db8::1")};

// ---- questions ----

TEST(Dns, a_plain_question_is_read) {
  const DnsQuestion question = good({});
  EXPECT_EQ(question.id, 0x1234);
  EXPECT_EQ(question.name, "www.example");
  EXPECT_EQ(question.type, kDnsA);
  EXPECT_EQ(question.klass, 1);
  EXPECT_TRUE(question.recursion_desired);
  EXPECT_FALSE(question.checking_disabled);
  EXPECT_FALSE(question.edns_size);
}

TEST(Dns, mixed_case_is_lowered_and_echoed) {
  const Query query{.name = "\3wWw\7eXAMPLE\0"s};
  const DnsQuestion question = good(query);
  EXPECT_EQ(question.name, "www.example");
  EXPECT_EQ(text(dns_answer(question, kAddresses, 60, Transport::udp)).substr(12, 17),
            query.question());
}

TEST(Dns, edns_is_read) {
  const DnsQuestion question =
      good({.counts = std::string(kCountsWithOpt), .rest = opt(4096, 0, 0x8000)});
  EXPECT_EQ(question.edns_size, 4096);
  EXPECT_TRUE(question.dnssec_ok);
}

TEST(Dns, options_of_edns_are_skipped) {
  const std::string cookie = "\0\x0a\0\x08"s + "12345678";
  std::string record = opt(1232);
  record.replace(record.size() - 2, 2, number(12));
  EXPECT_EQ(good({.counts = std::string(kCountsWithOpt), .rest = record + cookie}).edns_size, 1232);
  EXPECT_EQ(bad({.counts = std::string(kCountsWithOpt), .rest = record}).rcode,
            Rcode::format_error);
}

TEST(Dns, what_has_no_header_or_is_an_answer_is_not_answered) {
  EXPECT_FALSE(read_dns_query({}).error().question);
  EXPECT_FALSE(read_dns_query(bytes(Query{}.text()).first(11)).error().question);
  EXPECT_FALSE(bad({.flags = 0x8100}).question);
}

TEST(Dns, every_cut_is_an_error) {
  const std::string whole = Query{.counts = std::string(kCountsWithOpt), .rest = opt(1232)}.text();
  ASSERT_TRUE(read_dns_query(bytes(whole)));
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(read_dns_query(bytes(whole).first(size))) << size;
  EXPECT_FALSE(read_dns_query(bytes(whole + "x")));
}

TEST(Dns, only_one_question_and_nothing_but_it) {
  for (const std::string& counts :
       {"\0\0\0\0\0\0\0\0"s, "\0\2\0\0\0\0\0\0"s, "\0\1\0\1\0\0\0\0"s, "\0\1\0\0\0\1\0\0"s,
        "\0\1\0\0\0\0\0\2"s, "\xff\xff\xff\xff\xff\xff\xff\xff"s})
    EXPECT_EQ(bad({.counts = counts}).rcode, Rcode::format_error);
  EXPECT_EQ(bad({.counts = "\0\1\0\0\0\0\0\2"s, .rest = opt(512) + opt(512)}).rcode,
            Rcode::format_error);
  std::string tsig = opt(512);
  tsig[2] = '\xfa';
  EXPECT_EQ(bad({.counts = std::string(kCountsWithOpt), .rest = tsig}).rcode, Rcode::format_error);
}

TEST(Dns, other_opcodes_are_not_implemented) {
  const DnsError error = bad({.flags = 0x2900});  // UPDATE
  EXPECT_EQ(error.rcode, Rcode::not_implemented);
  ASSERT_TRUE(error.question);
  const auto answer = dns_refusal(*error.question, error.rcode);
  EXPECT_EQ(flags(answer), 0xa984U);
  EXPECT_EQ(answer.size(), 12U);
}

TEST(Dns, other_classes_and_the_root_are_refused) {
  EXPECT_EQ(bad({.klass = 3}).rcode, Rcode::refused);
  EXPECT_EQ(bad({.klass = 255}).rcode, Rcode::refused);
  EXPECT_EQ(bad({.name = "\0"s}).rcode, Rcode::refused);
}

TEST(Dns, a_later_edns_is_told_our_version) {
  const DnsError error = bad({.counts = std::string(kCountsWithOpt), .rest = opt(1232, 1)});
  EXPECT_EQ(error.rcode, Rcode::bad_version);
  const auto answer = dns_refusal(*error.question, error.rcode);
  EXPECT_EQ(flags(answer) & 0xfU, 0U);
  EXPECT_EQ(text(answer).substr(answer.size() - 6, 4), "\1\0\0\0"s);
}

TEST(Dns, compressed_names_are_errors) {
  EXPECT_EQ(bad({.name = "\xc0\x0c"s}).rcode, Rcode::format_error);
  EXPECT_EQ(bad({.name = "\3www\xc0\x0c"s}).rcode, Rcode::format_error);
  EXPECT_EQ(bad({.name = "\x40x\0"s}).rcode, Rcode::format_error);
}

TEST(Dns, names_are_bounded) {
  const std::string label = "\x3f" + std::string(63, 'a');
  const std::string last = "\x3d" + std::string(61, 'a');
  EXPECT_EQ(good({.name = label + label + label + last + "\0"s}).name.size(), 253U);
  EXPECT_EQ(bad({.name = label + label + label + label + "\0"s}).rcode, Rcode::format_error);
  EXPECT_EQ(bad({.name = std::string(300, '\1')}).rcode, Rcode::format_error);
}

TEST(Dns, what_is_no_host_name_does_not_exist) {
  for (const std::string& name : {"\7a b.com\0"s, "\4a\0.b\0"s,
                                  "\3www\7b\xc3\xbc"
                                  "cher\0"s,
                                  "\1*\3com\0"s, "\4-www\3com\0"s,
                                  "\3"
                                  "127\1"
                                  "1\0"s,
                                  "\4"
                                  "0x7f\0"s}) {
    const DnsError error = bad({.name = name});
    EXPECT_EQ(error.rcode, Rcode::no_such_name) << error.reason;
    EXPECT_TRUE(error.question && !error.question->echo.empty());
  }
}

TEST(Dns, a_dot_inside_a_label_is_no_dot_between_labels) {
  EXPECT_EQ(good({.name = "\3www\7example\0"s}).name, "www.example");
  EXPECT_EQ(bad({.name = "\x0bwww.example\0"s}).rcode, Rcode::no_such_name);
}

TEST(Dns, a_query_is_bounded) {
  std::string record = opt(1232);
  record.replace(record.size() - 2, 2, number(5000));
  const DnsError error =
      bad({.counts = std::string(kCountsWithOpt), .rest = record + std::string(5000, '\0')});
  EXPECT_EQ(error.rcode, Rcode::format_error);
}

// ---- answers ----

TEST(Dns, addresses_are_answered_by_family) {
  const auto v4 = dns_answer(good({}), kAddresses, 60, Transport::udp);
  EXPECT_EQ(flags(v4), 0x8180U);
  EXPECT_EQ(answers(v4), 2U);
  EXPECT_EQ(authorities(v4), 0U);
  EXPECT_EQ(text(v4).substr(29, 16), "\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\xc0\0\2\1"s);
  const auto v6 = dns_answer(good({.type = kDnsAaaa}), kAddresses, 60, Transport::udp);
  EXPECT_EQ(answers(v6), 1U);
  EXPECT_EQ(text(v6).substr(29),
            "\xc0\x0c\0\x1c\0\1\0\0\0\x3c\0\x10\x20\1\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1"s);
}

TEST(Dns, other_types_get_an_empty_answer_to_remember) {
  for (unsigned type : {65U, 64U, 16U, 255U, 15U, 12U}) {
    const auto answer = dns_answer(good({.type = type}), kAddresses, 60, Transport::udp);
    EXPECT_EQ(flags(answer), 0x8180U);
    EXPECT_EQ(answers(answer), 0U);
    EXPECT_EQ(authorities(answer), 1U);
    EXPECT_EQ(text(answer).substr(29, 3), "\0\0\6"s);
  }
}

TEST(Dns, a_family_without_addresses_gets_an_empty_answer) {
  const auto answer =
      dns_answer(good({.type = kDnsAaaa}), std::span(kAddresses).first(2), 60, Transport::udp);
  EXPECT_EQ(flags(answer) & 0xfU, 0U);
  EXPECT_EQ(answers(answer), 0U);
  EXPECT_EQ(authorities(answer), 1U);
}

TEST(Dns, a_refusal_repeats_the_question) {
  const auto answer = dns_refusal(good({.flags = 0x0110}), Rcode::no_such_name);
  EXPECT_EQ(flags(answer), 0x8193U);
  EXPECT_EQ(at(answer, 4), 1U);
  EXPECT_EQ(text(answer).substr(12, 17), Query{}.question());
  EXPECT_EQ(authorities(answer), 1U);
  EXPECT_EQ(authorities(dns_refusal(good({}), Rcode::server_failure)), 0U);
  EXPECT_EQ(flags(dns_refusal(good({.flags = 0}), Rcode::refused)), 0x8085U);
}

TEST(Dns, edns_is_answered_where_it_was_asked) {
  const Query query{.counts = std::string(kCountsWithOpt), .rest = opt(4096, 0, 0x8000)};
  const auto answer = dns_answer(good(query), kAddresses, 60, Transport::udp);
  EXPECT_EQ(additional(answer), 1U);
  EXPECT_EQ(text(answer).substr(answer.size() - 11), opt(1232, 0, 0x8000));
  EXPECT_EQ(additional(dns_answer(good({}), kAddresses, 60, Transport::udp)), 0U);
}

TEST(Dns, what_is_too_long_for_udp_is_truncated) {
  const std::vector<IpAddress> many(200, IpAddress::v4(192, 0, 2, 1));
  const auto plain = dns_answer(good({}), many, 60, Transport::udp);
  EXPECT_LE(plain.size(), 512U);
  EXPECT_GT(plain.size(), 512U - 16);
  EXPECT_NE(flags(plain) & kTruncatedBit, 0U);

  const auto with_edns = [&](unsigned size) {
    return dns_answer(good({.counts = std::string(kCountsWithOpt), .rest = opt(size)}), many, 60,
                      Transport::udp);
  };
  EXPECT_LE(with_edns(65535).size(), 1232U);
  EXPECT_GT(with_edns(65535).size(), 1232U - 16);
  EXPECT_LE(with_edns(700).size(), 700U);
  EXPECT_LE(with_edns(0).size(), 512U);
  EXPECT_NE(answers(with_edns(0)), 0U);

  const auto tcp = dns_answer(good({}), many, 60, Transport::tcp);
  EXPECT_EQ(answers(tcp), 200U);
  EXPECT_EQ(flags(tcp) & kTruncatedBit, 0U);
}

TEST(Dns, an_answer_over_tcp_fits_its_length) {
  const std::vector<IpAddress> many(10000, *IpAddress::parse("2001:db8::1"));
  const auto answer = dns_answer(good({.type = kDnsAaaa}), many, 60, Transport::tcp);
  EXPECT_LE(answer.size(), 65535U);
  EXPECT_NE(flags(answer) & kTruncatedBit, 0U);
}

// ---- TCP ----

TEST(Dns, messages_on_tcp_come_one_by_one) {
  const std::string stream = "\0\3abc\0\2de"s;
  for (std::size_t size = 0; size < 5; ++size)
    EXPECT_EQ(*next_dns_message(bytes(stream).first(size)), std::nullopt) << size;
  const auto first = next_dns_message(bytes(stream));
  ASSERT_TRUE(first && *first);
  EXPECT_EQ(as_text(**first), "abc");
  const auto second = next_dns_message(bytes(stream).subspan(2 + (*first)->size()));
  ASSERT_TRUE(second && *second);
  EXPECT_EQ(as_text(**second), "de");
  EXPECT_EQ(text(with_dns_length(bytes("abc"))), "\0\3abc"s);
}

TEST(Dns, a_long_message_on_tcp_is_an_error_at_once) {
  EXPECT_TRUE(next_dns_message(bytes("\x10\0"s)));
  EXPECT_FALSE(next_dns_message(bytes("\x10\1"s)));
}

}  // namespace
}  // namespace belljar::broker
