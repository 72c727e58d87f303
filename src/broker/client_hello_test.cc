#include "broker/client_hello.h"

#include <gtest/gtest.h>

namespace belljar::broker {
namespace {

using namespace std::string_literals;
using Kind = HelloVerdict::Kind;

Bytes bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string number(std::size_t value, int size) {
  std::string out;
  while (size-- > 0) out.push_back(static_cast<char>(value >> (8 * size) & 0xffU));
  return out;
}

std::string counted(const std::string& text, int size) { return number(text.size(), size) + text; }

std::string extension(unsigned type, const std::string& content) {
  return number(type, 2) + counted(content, 2);
}
std::string server_names(const std::string& list) { return extension(0, counted(list, 2)); }
std::string server_name(const std::string& name) { return server_names("\0"s + counted(name, 2)); }
std::string alpn(const std::string& list) { return extension(16, counted(list, 2)); }

const std::string kGrease = extension(0x1a1a, "\0"s);

std::string body(const std::string& extensions) {
  return "\3\3"s + std::string(32, 'r') + counted(std::string(32, 's'), 1) +
         counted("\x13\x01\x5a\x5a", 2) + counted("\0"s, 1) + extensions;
}

std::string message(const std::string& body, char type = 1) { return type + counted(body, 3); }
std::string hello(const std::string& extensions) { return message(body(counted(extensions, 2))); }

// In records of at most that size.
std::string records(const std::string& text, std::size_t size = 16384) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); at += size)
    out += "\x16\3\1"s + counted(text.substr(at, size), 2);
  return out;
}

HelloVerdict read(const std::string& text) { return read_client_hello(bytes(text)); }

ClientHello good(const std::string& extensions) {
  const HelloVerdict verdict = read(records(hello(extensions)));
  EXPECT_EQ(verdict.kind, Kind::complete) << verdict.reason;
  return verdict.hello;
}

std::string malformed(const std::string& text) {
  const HelloVerdict verdict = read(text);
  EXPECT_EQ(verdict.kind, Kind::malformed);
  EXPECT_FALSE(verdict.hello.server_name);
  return verdict.reason;
}

TEST(ClientHello, the_server_name_is_read) {
  EXPECT_EQ(good(server_name("www.example")).server_name, "www.example");
  EXPECT_EQ(good(kGrease + server_name("WWW.Example") + extension(0x2a2a, "")).server_name,
            "www.example");
}

TEST(ClientHello, there_may_be_no_name) {
  EXPECT_EQ(good(kGrease), ClientHello{});
  EXPECT_EQ(good(""), ClientHello{});
  EXPECT_EQ(read(records(message(body("")))).kind, Kind::complete);
}

TEST(ClientHello, protocols_are_read_in_their_order) {
  EXPECT_EQ(good(alpn("\2h2\x08http/1.1")).alpn, (std::vector<std::string>{"h2", "http/1.1"}));
  EXPECT_EQ(good(alpn("\2\x1a\x1a\2h2")).alpn, (std::vector<std::string>{"\x1a\x1a", "h2"}));
}

TEST(ClientHello, an_encrypted_hello_is_reported) {
  EXPECT_FALSE(good(server_name("a.example")).encrypted_client_hello);
  for (unsigned type : {0xfe0dU, 0xfe09U, 0xffceU})
    EXPECT_TRUE(good(server_name("a.example") + extension(type, "x")).encrypted_client_hello);
}

TEST(ClientHello, it_may_come_in_any_pieces) {
  const std::string whole = hello(server_name("www.example") + alpn("\2h2"));
  for (std::size_t size : {1U, 2U, 3U, 4U, 5U, 50U, 1000U}) {
    const std::string stream = records(whole, size);
    for (std::size_t there = 0; there < stream.size(); ++there) {
      const HelloVerdict verdict = read(stream.substr(0, there));
      ASSERT_EQ(verdict.kind, Kind::need_more) << size << " " << there << verdict.reason;
      ASSERT_GT(verdict.at_least, there);
      ASSERT_LE(verdict.at_least, stream.size());
    }
    EXPECT_EQ(read(stream).hello.server_name, "www.example") << size;
  }
}

TEST(ClientHello, waiting_for_at_least_ends_soon_even_for_small_records) {
  const std::string stream = records(hello(extension(21, std::string(9000, '\0'))), 1);
  std::size_t asked = 0;
  for (std::size_t there = 0;; ++asked) {
    const HelloVerdict verdict = read(stream.substr(0, there));
    if (verdict.kind == Kind::complete) break;
    ASSERT_EQ(verdict.kind, Kind::need_more);
    there = verdict.at_least;
  }
  EXPECT_LT(asked, 100U);
}

TEST(ClientHello, what_follows_is_not_looked_at) {
  const std::string stream = records(hello(server_name("www.example")));
  EXPECT_EQ(read(stream).size, stream.size());
  EXPECT_EQ(read(stream + "\x14\3\3\0\1\1garbage"s), read(stream));
}

TEST(ClientHello, other_protocols_are_known_at_the_first_bytes) {
  EXPECT_EQ(read("").kind, Kind::need_more);
  EXPECT_EQ(read("").at_least, 1U);
  for (const char* text : {"GET / HTTP/1.1\r\n", "SSH-2.0-x", "\x15\3\1", "\x17", "\x16\2"})
    EXPECT_EQ(read(text).kind, Kind::not_tls) << text;
  EXPECT_EQ(read("\0\0\0\x08"s).kind, Kind::not_tls);      // PostgreSQL
  EXPECT_EQ(read("\xff\xfb\x1f"s).kind, Kind::not_tls);    // Telnet
  EXPECT_EQ(read("\x80\0\1\3\1\2"s).kind, Kind::not_tls);  // Sun RPC
  EXPECT_EQ(read("\x80\x2e\1\4\1"s).kind, Kind::not_tls);
}

TEST(ClientHello, a_hello_in_the_form_of_ssl_2_is_malformed) {
  const std::string hello = "\x80\x2e\1\3\1\0\3"s;
  for (std::size_t there = 0; there < 5; ++there)
    EXPECT_EQ(read(hello.substr(0, there)).kind, Kind::need_more);
  EXPECT_EQ(read(hello).kind, Kind::malformed);
  EXPECT_EQ(read("\x80\x2e\1\0\2"s).kind, Kind::malformed);
}

TEST(ClientHello, two_names_are_malformed) {
  const std::string one = "\0"s + counted("a.example", 2);
  malformed(records(hello(server_names(one + one))));
  malformed(records(hello(server_name("a.example") + server_name("a.example"))));
  malformed(records(hello(server_name("a.example") + kGrease + server_name("b.example"))));
}

TEST(ClientHello, a_repeated_extension_is_malformed) {
  malformed(records(hello(kGrease + kGrease)));
  malformed(records(hello(alpn("\2h2") + server_name("a.example") + alpn("\2h2"))));
}

TEST(ClientHello, a_name_that_is_no_host_name_is_malformed) {
  for (const std::string& name :
       {""s, "a..b"s, "a.example."s, "192.0.2.1"s, "127.1"s, "::1"s, "[::1]"s, "a b"s,
        "a.example\0.b"s,
        "b\xc3\xbc"
        "cher.example"s,
        "user@a.example"s, "a.example:443"s, "*.example"s, std::string(254, 'a')})
    malformed(records(hello(server_name(name))));
  malformed(records(hello(server_names(""))));
  malformed(records(hello(server_names("\1"s + counted("a.example", 2)))));
  malformed(records(hello(extension(0, ""))));
}

TEST(ClientHello, protocols_that_are_wrong_are_malformed) {
  for (const std::string& list : {""s, "\0"s, "\3h2"s, "\2h2\0"s})
    malformed(records(hello(alpn(list))));
  malformed(records(hello(extension(16, "\0\3\2h2x"s))));
  std::string many;
  for (int i = 0; i < 65; ++i) many += "\1x";
  malformed(records(hello(alpn(many))));
}

TEST(ClientHello, lengths_must_fit) {
  const std::string extensions = server_name("a.example");
  malformed(records(message(body(counted(extensions, 2) + "x"))));
  malformed(records(message(body(number(extensions.size() + 1, 2) + extensions))));
  malformed(records(message(body(number(extensions.size() - 1, 2) + extensions))));
  malformed(records(message(body("\0"s))));
  malformed(records(message("")));
  malformed(records(message("\3\3")));
  malformed(records(hello("\0\0\0"s)));
  malformed(records(hello(extensions) + "x"));
  const std::string whole = body(counted(extensions, 2));
  for (std::size_t size = 0; size < whole.size(); ++size)
    if (size != body("").size()) malformed(records(message(whole.substr(0, size))));
}

TEST(ClientHello, other_messages_and_records_are_malformed) {
  malformed(records(message(body(""), 2)));
  malformed(records("\0\0\0\0"s));
  const std::string whole = hello(server_name("a.example"));
  malformed(records(whole.substr(0, 9)) + "\x15\3\1\0\2\1\0"s);
  malformed(records(whole.substr(0, 9)) + "\x16\2\0"s);
  malformed("\x16\3\1\0\0"s);
  malformed("\x16\3\1\x40\1"s);
}

TEST(ClientHello, it_is_bounded) {
  const std::string fits = hello(extension(21, std::string(65000, '\0')));
  EXPECT_EQ(read(records(fits)).kind, Kind::complete);
  malformed(records(fits, 500));
  malformed("\x16\3\1\0\4\1\1\0\0"s);
  malformed("\x16\3\1\0\4\1\xff\xff\xff"s);
}

}  // namespace
}  // namespace belljar::broker
