#include "broker/tls_talk.h"

#include <gtest/gtest.h>

namespace belljar::broker {
namespace {

using namespace std::string_literals;
using Kind = TlsTalk::Kind;

std::string number(std::size_t value, int size) {
  std::string out;
  while (size-- > 0) out.push_back(static_cast<char>(value >> (8 * size) & 0xffU));
  return out;
}
std::string counted(const std::string& text, int size) { return number(text.size(), size) + text; }
std::string extension(unsigned type, const std::string& content) {
  return number(type, 2) + counted(content, 2);
}
std::string message(char type, const std::string& body) { return type + counted(body, 3); }

std::string record(int type, const std::string& content) {
  return static_cast<char>(type) + "\3\3"s + counted(content, 2);
}
// In records of at most that size.
std::string handshake(const std::string& text, std::size_t size = 16384) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); at += size) out += record(22, text.substr(at, size));
  return out;
}

std::string client_hello(const std::string& name, const std::string& more = "") {
  const std::string names = counted("\0"s + counted(name, 2), 2);
  return message(1, "\3\3"s + std::string(32, 'r') + counted("", 1) + counted("\x13\1", 2) +
                        counted("\0"s, 1) + counted(extension(0, names) + more, 2));
}

const std::string kRandom(32, 'R');
const std::string kRetryRandom =
    "\xcf\x21\xad\x74\xe5\x9a\x61\x11\xbe\x1d\x8c\x02\x1e\x65\xb8\x91"
    "\xc2\xa2\x11\x16\x7a\xbb\x8c\x5e\x07\x9e\x09\xe2\xc8\xa8\x33\x9c";
const std::string kVersion13 = extension(43, "\3\4");

std::string server_hello(const std::string& random, const std::string& extensions) {
  return message(2, "\3\3"s + random + counted("", 1) + "\x13\1\0"s + counted(extensions, 2));
}
const std::string kNew = handshake(server_hello(kRandom, kVersion13));
const std::string kOld = handshake(server_hello(kRandom, extension(23, "")) + message(11, "cert"));
const std::string kRetry = handshake(server_hello(kRetryRandom, kVersion13));

const std::string kChange = record(20, "\1");
const std::string kData = record(23, "secret");
const std::string kFinished = record(22, std::string(40, 'f'));
const std::string kKeys = handshake(message(16, std::string(70, 'k')));

// What became of a talk of a guest and a server.
struct Talk {
  TlsTalk talk;
  std::string held, passed;
  std::vector<std::string> names;
  TlsTalk::Step last;

  void server(const std::string& text) { talk.hear_server(std::as_bytes(std::span(text))); }
  void guest(const std::string& text) {
    held += text;
    for (;;) {
      last = talk.hear_guest(std::as_bytes(std::span(held)));
      if (last.kind == Kind::hello) names.push_back(last.hello.server_name.value_or("none"));
      if (last.pass == 0) break;
      passed += held.substr(0, last.pass);
      held.erase(0, last.pass);
    }
  }
  Kind kind() { return talk.hear_guest(std::as_bytes(std::span(held))).kind; }
};

Talk begun() {
  Talk talk;
  talk.guest(handshake(client_hello("a.example")));
  EXPECT_EQ(talk.names, std::vector<std::string>{"a.example"});
  EXPECT_EQ(talk.last.kind, Kind::need_more);
  return talk;
}

TEST(TlsTalk, it_opens_when_the_server_has_chosen_1_3) {
  Talk talk = begun();
  EXPECT_FALSE(talk.talk.has_heard_server());
  talk.server(kNew + kChange + kData);
  EXPECT_TRUE(talk.talk.has_heard_server());
  talk.guest("anything");
  EXPECT_EQ(talk.last.kind, Kind::open);
}

TEST(TlsTalk, a_second_hello_for_the_same_server_passes) {
  Talk talk = begun();
  talk.server(kRetry + kChange);
  EXPECT_FALSE(talk.talk.has_heard_server());
  talk.guest(kChange + handshake(client_hello("A.example", extension(44, "cookie"))));
  EXPECT_EQ(talk.names, (std::vector<std::string>{"a.example", "a.example"}));
  EXPECT_EQ(talk.last.kind, Kind::need_more);
  talk.server(kNew);
  EXPECT_EQ(talk.kind(), Kind::open);
}

TEST(TlsTalk, a_second_hello_for_another_server_is_refused) {
  for (const std::string& before : {""s, kChange, kData, kData + kChange})
    for (std::size_t size : {1U, 7U, 16384U}) {
      Talk talk = begun();
      talk.guest(before);
      talk.server(kRetry);
      const std::string passed = talk.passed;
      talk.guest(handshake(client_hello("b.example"), size));
      EXPECT_EQ(talk.last.kind, Kind::refused);
      EXPECT_EQ(talk.passed, passed);
      talk.server(kNew);
      EXPECT_EQ(talk.kind(), Kind::refused);
    }
}

TEST(TlsTalk, a_second_hello_without_a_name_is_refused) {
  Talk talk = begun();
  talk.server(kRetry);
  talk.guest(handshake(
      message(1, "\3\3"s + kRandom + counted("", 1) + counted("\x13\1", 2) + counted("\0"s, 1))));
  EXPECT_EQ(talk.last.kind, Kind::refused);
}

TEST(TlsTalk, a_second_hello_is_read_as_strictly_as_the_first) {
  Talk talk = begun();
  talk.server(kRetry);
  talk.guest(handshake(client_hello("a.example", extension(0xfe0d, "x"))));
  EXPECT_TRUE(talk.last.kind == Kind::need_more && talk.names.size() == 2);  // and is judged
  talk = begun();
  talk.server(kRetry);
  talk.guest(handshake(client_hello("a.example") + "x"));
  EXPECT_EQ(talk.last.kind, Kind::refused);
}

TEST(TlsTalk, a_hello_that_the_server_did_not_ask_for_is_refused) {
  Talk talk = begun();
  talk.guest(handshake(client_hello("a.example")));
  EXPECT_EQ(talk.last.kind, Kind::refused);
  Talk at_once;
  at_once.guest(handshake(client_hello("a.example")) + handshake(client_hello("b.example")));
  EXPECT_EQ(at_once.last.kind, Kind::refused);
  Talk third = begun();
  third.server(kRetry);
  third.guest(handshake(client_hello("a.example")) + handshake(client_hello("a.example")));
  EXPECT_EQ(third.last.kind, Kind::refused);
}

TEST(TlsTalk, a_server_asks_once_for_another_hello) {
  Talk talk = begun();
  talk.server(kRetry);
  talk.guest(handshake(client_hello("a.example")));
  talk.server(kRetry);
  EXPECT_EQ(talk.kind(), Kind::refused);
  Talk both = begun();
  both.server(kRetry + kRetry);
  EXPECT_EQ(both.kind(), Kind::refused);
  Talk unasked = begun();
  unasked.server(kRetry + kNew);
  EXPECT_EQ(unasked.kind(), Kind::refused);
}

TEST(TlsTalk, early_data_passes_before_the_answer) {
  Talk talk = begun();
  talk.guest(kChange + kData + kData);
  EXPECT_EQ(talk.last.kind, Kind::need_more);
  EXPECT_TRUE(talk.held.empty());
  talk.guest(kData.substr(0, 7));  // the answer comes in the middle of a record
  talk.server(kNew);
  EXPECT_EQ(talk.kind(), Kind::open);
}

TEST(TlsTalk, the_servers_hello_may_come_in_any_pieces) {
  const std::string hello = server_hello(kRetryRandom, kVersion13);
  for (std::size_t size : {1U, 3U, 50U})
    for (std::size_t segment : {1U, 2U, 1000U}) {
      Talk talk = begun();
      const std::string stream = record(21, "\1\x70") + handshake(hello, size);
      for (std::size_t at = 0; at < stream.size(); at += segment) {
        talk.guest(kData);
        ASSERT_EQ(talk.last.kind, Kind::need_more);
        talk.server(stream.substr(at, segment));
      }
      talk.guest(handshake(client_hello("b.example")));
      EXPECT_EQ(talk.last.kind, Kind::refused);
      EXPECT_NE(talk.last.reason.find("names another server"), std::string::npos);
    }
}

TEST(TlsTalk, who_does_not_answer_in_tls_hears_nothing_more) {
  for (const std::string& answer :
       {"HTTP/1.1 400 Bad Request\r\n"s, record(23, "x"), kChange, handshake(message(1, "x")),
        "\x16\3\3\0\0"s, handshake(server_hello(kRandom, kVersion13 + kVersion13)),
        handshake(server_hello(kRetryRandom, "")),
        handshake(server_hello(kRetryRandom, kVersion13) + "x")}) {
    Talk talk = begun();
    talk.server(answer);
    EXPECT_TRUE(talk.talk.has_heard_server());
    talk.guest(kData);
    EXPECT_EQ(talk.last.kind, Kind::refused);
  }
}

TEST(TlsTalk, a_server_that_speaks_first_speaks_something_else) {
  Talk talk;
  talk.server("220 ready\r\n");
  EXPECT_FALSE(talk.talk.has_heard_server());
  Talk other = talk;
  talk.guest("EHLO x\r\n");
  EXPECT_EQ(talk.last.kind, Kind::not_tls);
  other.guest(handshake(client_hello("a.example")));
  EXPECT_EQ(other.last.kind, Kind::refused);
}

TEST(TlsTalk, older_versions_are_followed_and_their_data_passes) {
  for (std::size_t segment : {1U, 3U, 11U, 1000U}) {
    Talk talk = begun();
    talk.server(kOld);
    EXPECT_TRUE(talk.talk.has_heard_server());
    const std::string stream = handshake(message(11, std::string(300, 'c')), 33) + kKeys + kChange +
                               kFinished + kData + record(21, "\1\0"s) + kData;
    const std::size_t before = talk.passed.size();
    for (std::size_t at = 0; at < stream.size(); at += segment)
      talk.guest(stream.substr(at, segment));
    EXPECT_EQ(talk.last.kind, Kind::need_more) << talk.last.reason;
    EXPECT_EQ(talk.passed.substr(before), stream);
  }
}

TEST(TlsTalk, a_second_handshake_of_an_older_version_is_refused) {
  const std::string hello = client_hello("b.example");
  for (const std::string& later :
       {kKeys + kChange + kFinished + kData + record(22, std::string(200, 'e')),
        kKeys + kChange + kFinished + record(22, "e"),
        kChange + kFinished + kFinished,                     // after a resumed one
        kKeys + kChange + record(22, std::string(97, 'f')),  // a hello behind it
        kKeys + handshake(hello), handshake(hello), handshake(message(16, "k") + hello),
        handshake(message(16, std::string(70, 'k')) + hello, 9)}) {
    Talk talk = begun();
    talk.server(kOld);
    talk.guest(later);
    EXPECT_EQ(talk.last.kind, Kind::refused);
  }
}

TEST(TlsTalk, what_is_no_record_is_refused) {
  for (const std::string& later : {"GET / HTTP/1.1\r\n"s, "\x17\2\0\0\1x"s, "\x17\3\3\xff\xff"s,
                                   record(25, "x"), record(0, "x")}) {
    Talk talk = begun();
    talk.guest(later);
    EXPECT_EQ(talk.last.kind, Kind::refused);
  }
}

}  // namespace
}  // namespace belljar::broker
