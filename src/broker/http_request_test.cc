#include "broker/http_request.h"

#include <gtest/gtest.h>

namespace belljar::broker {
namespace {

using namespace std::string_literals;
using Kind = HttpRequests::Kind;
using Step = HttpRequests::Step;

Bytes bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

// A connection as a caller has it, whose judge allows everything.
struct Connection {
  HttpRequests requests;
  std::string held = {};
  std::string passed = {};
  std::vector<HttpRequest> seen = {};
  Step last = {};

  void receive(std::string_view text) {
    held += text;
    for (;;) {
      last = requests.feed(bytes(held));
      if (last.kind == Kind::request) seen.push_back(last.request);
      ASSERT_LE(last.pass, held.size());
      passed += held.substr(0, last.pass);
      held.erase(0, last.pass);
      if (last.pass == 0) return;
    }
  }
};

Connection all_of(std::string_view text) {
  Connection connection;
  connection.receive(text);
  return connection;
}

Connection byte_by_byte(std::string_view text) {
  Connection connection;
  for (char c : text) connection.receive(std::string_view(&c, 1));
  return connection;
}

// In pieces or not, the same comes out.
Connection after(std::string_view text) {
  Connection whole = all_of(text);
  const Connection pieces = byte_by_byte(text);
  EXPECT_EQ(whole.passed, pieces.passed) << text;
  EXPECT_EQ(whole.seen, pieces.seen) << text;
  EXPECT_EQ(whole.last, pieces.last) << text;
  return whole;
}

std::string malformed(std::string_view text) {
  const Connection connection = after(text);
  EXPECT_EQ(connection.last.kind, Kind::malformed) << text;
  EXPECT_FALSE(connection.last.reason.empty());
  EXPECT_EQ(connection.passed, "") << text;
  return connection.last.reason;
}

std::string get(std::string_view fields) {
  return "GET / HTTP/1.1\r\n" + std::string(fields) + "\r\n";
}
const std::string kPost = "POST / HTTP/1.1\r\nHost: a.example\r\n";
const std::string kPlain = get("Host: a.example\r\n");

std::optional<HttpHost> host_of(const std::string& value) {
  const Connection connection = after(get("Host: " + value + "\r\n"));
  if (connection.seen.empty()) return std::nullopt;
  return connection.seen.front().host;
}

// ---- what it is ----

TEST(HttpRequests, a_request_is_judged_before_it_passes) {
  HttpRequests requests;
  EXPECT_EQ(requests.feed(bytes(kPlain).first(kPlain.size() - 1)), Step{});
  const Step step = requests.feed(bytes(kPlain));
  EXPECT_EQ(step.kind, Kind::request);
  EXPECT_EQ(step.pass, kPlain.size());
  EXPECT_EQ(step.request, (HttpRequest{.method = "GET", .host = {.name = "a.example"}}));
}

TEST(HttpRequests, any_method_is_http) {
  for (std::string method : {"GET", "M-SEARCH", "get", "X!#$%&'*+.^_`|~0"})
    EXPECT_EQ(after(method + " / HTTP/1.1\r\nHost: a\r\n\r\n").seen.at(0).method, method);
}

TEST(HttpRequests, empty_lines_before_a_request_are_http) {
  const Connection connection = after("\r\n\r\n" + kPlain + "\r\n" + kPlain);
  EXPECT_EQ(connection.seen.size(), 2U);
  EXPECT_EQ(connection.passed, "\r\n\r\n" + kPlain + "\r\n" + kPlain);
}

TEST(HttpRequests, other_protocols_are_known) {
  for (const std::string& text :
       {"SSH-2.0-OpenSSH_9.2\r\n"s, "*1\r\n$4\r\nPING\r\n"s, "\0\0\0\x08\4\xd2\x16\x2f"s,
        "\x16\3\1"s, "EHLO mail.example\r\n"s, "USER me\r\n"s, "a1 LOGIN me secret\r\n"s,
        "get key\r\n"s, "PING\r\n"s, "PING\n"s, "0 \2\1\1"s, "\x1c\1\0\0"s, "{\"a\": 1}"s,
        "GET\r\n"s, "GET \r\n"s, "GET\0/"s}) {
    const Connection connection = after(text);
    EXPECT_EQ(connection.last.kind, Kind::not_http) << text;
    EXPECT_EQ(connection.passed, "");
  }
}

TEST(HttpRequests, what_is_doubtful_needs_more) {
  for (std::string text :
       {"", "\r\n", "G", "GET", "GET /", "GET / HTTP/1.1", "GET / HTTP/1.1\r", "EHLO x"})
    EXPECT_EQ(after(text).last.kind, Kind::need_more) << text;
}

TEST(HttpRequests, the_preface_of_http2_is_reported) {
  EXPECT_EQ(after("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").last.kind, Kind::http2);
  EXPECT_EQ(after(kPlain + "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").last.kind, Kind::malformed);
  malformed("PRI * HTTP/1.1\r\nHost: a\r\n\r\n");
}

TEST(HttpRequests, later_requests_cannot_be_another_protocol) {
  EXPECT_EQ(after(kPlain + "EHLO x\r\n").last.kind, Kind::malformed);
  EXPECT_EQ(after(kPlain + "\x16\3\1").last.kind, Kind::malformed);
}

// ---- hosts ----

TEST(HttpRequests, hosts_have_one_form) {
  EXPECT_EQ(host_of("a.example"), (HttpHost{.name = "a.example"}));
  EXPECT_EQ(host_of("A.Example."), (HttpHost{.name = "a.example"}));
  EXPECT_EQ(host_of(" \ta.example:8080\t "), (HttpHost{.name = "a.example", .port = 8080}));
  const IpAddress v4 = IpAddress::v4(192, 0, 2, 1);
  EXPECT_EQ(host_of("192.0.2.1"), (HttpHost{.name = "192.0.2.1", .address = v4}));
  EXPECT_EQ(host_of("[::ffff:192.0.2.1]:80"),
            (HttpHost{.name = "192.0.2.1", .address = v4, .port = 80}));
  EXPECT_EQ(
      host_of("[2001:DB8:0::1]:443"),
      (HttpHost{.name = "2001:db8::1", .address = IpAddress::parse("2001:db8::1"), .port = 443}));
}

TEST(HttpRequests, what_is_no_host_is_malformed) {
  for (const char* value : {"",
                            "user@a.example",
                            "a.example:",
                            "a.example:0",
                            "a.example:080",
                            "a.example:65536",
                            "a.example:80:80",
                            "a.example:+80",
                            "a.example..",
                            ".",
                            "a..example",
                            "a b",
                            "a,b",
                            "a/b",
                            "http://a.example",
                            "127.1",
                            "0x7f.0.0.1",
                            "2130706433",
                            "192.0.2.1.",
                            "010.0.0.1",
                            "2001:db8::1",
                            "[2001:db8::1",
                            "[192.0.2.1]",
                            "[a.example]",
                            "[::1]x",
                            "[::1]80",
                            "[fe80::1%25eth0]",
                            "*.example",
                            "a%2eexample",
                            "a.example#",
                            "a.example\\b",
                            "a_b..c"})
    malformed(get("Host: " + std::string(value) + "\r\n"));
}

TEST(HttpRequests, there_is_one_host) {
  malformed(get(""));
  malformed(get("Accept: x\r\n"));
  malformed("GET / HTTP/1.0\r\n\r\n");
  malformed("GET http://a.example/ HTTP/1.1\r\n\r\n");
  malformed(get("Host: a.example\r\nHost: a.example\r\n"));
  malformed(get("Host: a.example\r\nhOST: b.example\r\n"));
}

TEST(HttpRequests, an_absolute_target_agrees_with_the_host) {
  const auto absolute = [](const std::string& target, const std::string& host) {
    return "GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n";
  };
  EXPECT_EQ(after(absolute("http://a.example/x", "a.example")).seen.at(0).host.name, "a.example");
  EXPECT_EQ(after(absolute("HTTP://A.example:80?x", "a.example")).seen.size(), 1U);
  EXPECT_EQ(after(absolute("http://a.example", "a.example:80")).seen.size(), 1U);
  malformed(absolute("http://b.example/", "a.example"));
  malformed(absolute("http://a.example:81/", "a.example"));
  malformed(absolute("http://a.example@b.example/", "a.example"));
  malformed(absolute("http://a.example#@b.example/", "a.example"));
  malformed(absolute("http://a.example\\@b.example/", "a.example"));
  malformed(absolute("http:///", "a.example"));
  malformed(absolute("https://a.example/", "a.example"));
  malformed(absolute("ftp://a.example/", "a.example"));
  malformed(absolute("a.example/", "a.example"));
  malformed(absolute("*", "a.example"));
}

TEST(HttpRequests, options_may_ask_about_the_server) {
  EXPECT_EQ(after("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n").seen.size(), 1U);
}

// ---- lines ----

TEST(HttpRequests, a_request_line_has_one_form) {
  for (const char* line : {"GET /",
                           "GET / HTTP/0.9",
                           "GET / HTTP/1.2",
                           "GET / HTTP/2.0",
                           "GET / http/1.1",
                           "GET / HTTP/1.1 ",
                           "GET  / HTTP/1.1",
                           "GET /  HTTP/1.1",
                           "GET\t/ HTTP/1.1",
                           "GET /\tHTTP/1.1",
                           " GET / HTTP/1.1",
                           "\tGET / HTTP/1.1",
                           "\nGET / HTTP/1.1",
                           "\rGET / HTTP/1.1",
                           "GET\r/ HTTP/1.1",
                           "GET / HTTP/1.1\r",
                           "GET /a b HTTP/1.1",
                           "GET /\xc3\xbc HTTP/1.1",
                           "GET /\x0b HTTP/1.1",
                           "\x0bGET / HTTP/1.1",
                           "GET\x85/ HTTP/1.1",
                           "GET / HTTP/1.10",
                           "GET / HTTP/11"})
    malformed(std::string(line) + "\r\nHost: a.example\r\n\r\n");
}

TEST(HttpRequests, lines_end_in_crlf_and_hold_printable_ascii) {
  malformed("GET / HTTP/1.1\nHost: a.example\n\n");
  malformed(get("Host: a.example\n"));
  malformed(get("Host: a.example\r\nX: a\rHost: b.example\r\n"));
  malformed(get("Host: a.example\r\nX: a\r\r\n"));
  malformed(get("Host: a.example\r\nX: a\0b\r\n"s));
  malformed(get("Host: a.example\r\nX: a\x85Host: b.example\r\n"));
  malformed(get("Host: a.example\r\nX: a\x0b\r\n"));
  malformed(get("Host: a.example\r\nX: \xe2\x80\xa8\r\n"));
}

TEST(HttpRequests, headers_have_one_form) {
  malformed(get("Host : a.example\r\n"));
  malformed(get("Host: a.example\r\nX : a\r\n"));
  malformed(get("Host: a.example\r\n b.example\r\n"));
  malformed(get("Host: a.example\r\nX: a\r\n\tb\r\n"));
  malformed(get(" Host: a.example\r\n"));
  malformed(get("Host: a.example\r\n: a\r\n"));
  malformed(get("Host: a.example\r\nX\r\n"));
  malformed(get("Host: a.example\r\nX(y): z\r\n"));
  malformed(get("Host: a.example\r\nContent_Length: 4\r\n"));
  malformed(get("Host: a.example\r\nTransfer_Encoding: chunked\r\n"));
  malformed(get("Host: a.example\r\nConnection: close, Host\r\n"));
  malformed(get("Host: a.example\r\nConnection: transfer-encoding\r\n"));
  EXPECT_EQ(after(get("Host:a.example\r\nX:\r\nmy_header: a:b\r\nConnection: keep-alive,\r\n"))
                .seen.size(),
            1U);
}

TEST(HttpRequests, lines_and_heads_are_bounded) {
  const auto long_line = [](std::size_t size) {
    return get("Host: a.example\r\nX: " + std::string(size - 3, 'x') + "\r\n");
  };
  EXPECT_EQ(all_of(long_line(kMaxHttpLine)).seen.size(), 1U);
  EXPECT_EQ(all_of(long_line(kMaxHttpLine + 1)).last.kind, Kind::malformed);
  EXPECT_EQ(all_of("GET /" + std::string(kMaxHttpLine, 'x')).last.kind, Kind::malformed);
  EXPECT_EQ(all_of(std::string(kMaxHttpLine + 1, 'x')).last.kind, Kind::malformed);
  std::string crlfs;
  for (std::size_t i = 0; i < kMaxHttpHead; ++i) crlfs += "\r\n";
  EXPECT_EQ(all_of(crlfs).last.kind, Kind::malformed);
  EXPECT_EQ(all_of(kPlain + crlfs).last.kind, Kind::malformed);
  std::string fields;
  while (fields.size() < kMaxHttpHead) fields += "X: " + std::string(1000, 'x') + "\r\n";
  EXPECT_EQ(all_of(get("Host: a.example\r\n" + fields)).last.kind, Kind::malformed);
}

// ---- bodies ----

TEST(HttpRequests, a_body_has_its_content_length) {
  const std::string first = kPost + "Content-Length: 5\r\n\r\nhello";
  const Connection connection = after(first + kPlain);
  EXPECT_EQ(connection.seen.size(), 2U);
  EXPECT_EQ(connection.passed, first + kPlain);
  EXPECT_EQ(after(kPost + "Content-Length: 0\r\n\r\n" + kPlain).seen.size(), 2U);
}

TEST(HttpRequests, a_request_inside_a_body_is_none) {
  const std::string body = "hello\r\n" + kPlain;
  const Connection connection =
      after(kPost + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  EXPECT_EQ(connection.seen.size(), 1U);
  EXPECT_EQ(connection.held, "");
}

TEST(HttpRequests, a_body_that_a_server_may_take_for_a_request_is_malformed) {
  const auto with_body = [](const std::string& method, const std::string& body) {
    return method +
           " / HTTP/1.1\r\nHost: a.example\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + body;
  };
  for (const char* method : {"GET", "HEAD", "DELETE", "OPTIONS", "POST", "PUT", "PATCH", "QUERY"})
    for (const std::string& body :
         {kPlain, "\r\n\r\n" + kPlain, " \t" + kPlain, "GET /\r\n"s, "GET /\n"s, "x y HTTP/1.0\r"s,
          "GET http://b.example/\r\n"s, "OPTIONS * \n"s, "get\v/\xa0hTTp/1.1\n"s,
          "GET /" + std::string(70'000, 'x') + " HTTP/1.1\r\n"})
      EXPECT_EQ(after(with_body(method, body)).last.kind, Kind::malformed) << method << body;
  for (const std::string& body :
       {"{\"log\": \"GET / HTTP/1.1\"}\r\n"s, "a=1&b=GET / HTTP/1.1\n"s, "get /\n"s,
        "hello world\n"s, "127.0.0.1 - - \"GET / HTTP/1.1\" 200\n"s, "GET / HTTP/1.1"s, "\r\n"s,
        "GET\r\n"s, "HTTP/1.1\n"s}) {
    EXPECT_EQ(after(with_body("POST", body) + kPlain).seen.size(), 2U) << body;
    EXPECT_EQ(after(with_body("GET", body) + kPlain).seen.size(), 2U) << body;
  }
  // Below the first line only where bodies have no meaning.
  const std::string later = "hello world\r\n" + kPlain;
  EXPECT_EQ(after(with_body("POST", later) + kPlain).seen.size(), 2U);
  EXPECT_EQ(after(with_body("GET", later)).last.kind, Kind::malformed);
  const std::string chunked = get("Host: a\r\nTransfer-Encoding: chunked\r\n") + "10\r\n";
  EXPECT_EQ(after(chunked + kPlain).last.kind, Kind::malformed);
}

TEST(HttpRequests, a_second_host_is_seen) {
  const Connection connection = after(kPlain + get("Host: b.example\r\n"));
  ASSERT_EQ(connection.seen.size(), 2U);
  EXPECT_EQ(connection.seen[1].host.name, "b.example");
}

TEST(HttpRequests, nothing_of_a_second_request_passes_before_it_is_judged) {
  const std::string second = get("Host: b.example\r\n");
  const Connection connection = after(kPlain + second.substr(0, second.size() - 1));
  EXPECT_EQ(connection.passed, kPlain);
}

TEST(HttpRequests, a_content_length_is_one_plain_number) {
  for (const char* value : {"", "+5", "-5", "5 5", "5,5", "5, 5", "0x5", "05", "5.", "5\t5", "1e1",
                            "9999999999999999999", "18446744073709551621"})
    malformed(kPost + "Content-Length: " + value + "\r\n\r\n");
  malformed(kPost + "Content-Length: 5\r\nContent-Length: 6\r\n\r\n");
  malformed(kPost + "Content-Length: 5\r\nContent-Length: 5\r\n\r\n");
}

TEST(HttpRequests, a_transfer_encoding_is_chunked) {
  for (const char* value : {"", "gzip", "gzip, chunked", "chunked, chunked", "chunked, identity",
                            "identity", "xchunked", "chunked;q=1", "\"chunked\""})
    malformed(kPost + "Transfer-Encoding: " + value + "\r\n\r\n");
  malformed(kPost + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n");
  malformed(kPost + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n");
  malformed(kPost + "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n");
  malformed("POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
}

const std::string kChunked = kPost + "Transfer-Encoding: Chunked\r\n\r\n";

TEST(HttpRequests, chunks_pass_and_the_next_request_is_found) {
  for (std::string body : {"0\r\n\r\n", "5\r\nhello\r\n0\r\n\r\n", "00A\r\n0123456789\r\n0\r\n\r\n",
                           "1\r\na\r\n1\r\nb\r\n000\r\nDigest: x\r\nY: z\r\n\r\n"}) {
    const Connection connection = after(kChunked + body + kPlain);
    EXPECT_EQ(connection.seen.size(), 2U) << body;
    EXPECT_EQ(connection.passed, kChunked + body + kPlain);
  }
}

TEST(HttpRequests, chunks_have_one_form) {
  for (const std::string& body : {"\r\n"s,
                                  " 5\r\n"s,
                                  "5 \r\n"s,
                                  "5;x=y\r\n"s,
                                  "5\nhello"s,
                                  "0x5\r\n"s,
                                  "-5\r\n"s,
                                  "+5\r\n"s,
                                  "g\r\n"s,
                                  "5\r\nhello0"s,
                                  "5\r\nhello\n"s,
                                  "5\r\nhello\rx"s,
                                  "5\r\nhello!"s,
                                  "1000000000000000\r\n"s,
                                  "0\r\nHost: b.example\r\n"s,
                                  "0\r\nContent-Length: 5\r\n"s,
                                  "0\r\nTransfer_Encoding: chunked\r\n"s,
                                  "0\r\n X: y\r\n"s,
                                  "0\r\nGET / HTTP/1.1\r\n"s,
                                  "0\r\nX: y\n"s,
                                  "0\r\n\n"s,
                                  "\0\r\n"s}) {
    const Connection connection = after(kChunked + body);
    EXPECT_EQ(connection.last.kind, Kind::malformed) << body;
    EXPECT_EQ(connection.seen.size(), 1U);
  }
  EXPECT_EQ(after(kChunked + "ffffffffffffffffff").last.kind, Kind::malformed);
}

TEST(HttpRequests, a_trailer_is_bounded) {
  std::string fields;
  while (fields.size() < kMaxHttpHead) fields += "X: " + std::string(1000, 'x') + "\r\n";
  EXPECT_EQ(all_of(kChunked + "0\r\n" + fields).last.kind, Kind::malformed);
}

// ---- what is HTTP no longer ----

TEST(HttpRequests, a_websocket_waits_for_its_answer) {
  const std::string upgrade =
      get("Host: a.example\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\n");
  Connection connection = after(upgrade + kPlain);
  ASSERT_EQ(connection.seen.size(), 1U);
  EXPECT_TRUE(connection.seen[0].upgrade);
  EXPECT_EQ(connection.last.kind, Kind::waiting);
  EXPECT_EQ(connection.passed, upgrade);
  connection.requests.continue_as_http();
  connection.receive("");
  EXPECT_EQ(connection.seen.size(), 2U);
}

TEST(HttpRequests, only_the_first_request_may_ask_for_a_websocket) {
  EXPECT_EQ(after(kPlain + get("Host: a.example\r\nUpgrade: websocket\r\n")).last.kind,
            Kind::malformed);
}

TEST(HttpRequests, other_upgrades_stay_http) {
  const std::string h2c =
      get("Host: a.example\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
          "HTTP2-Settings: AAMAAABk\r\n");
  const Connection connection = after(h2c + kPlain);
  ASSERT_EQ(connection.seen.size(), 2U);
  EXPECT_FALSE(connection.seen[0].upgrade);
  EXPECT_EQ(after(h2c + "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").last.kind, Kind::malformed);
  EXPECT_FALSE(after(get("Host: a\r\nUpgrade: h2c, websocket\r\n")).seen.at(0).upgrade);
  malformed(get("Host: a.example\r\nUpgrade: h2c\r\nUpgrade: websocket\r\n"));
  EXPECT_EQ(after(kPost + "Upgrade: h2c\r\nContent-Length: 5\r\n\r\nhello" + kPlain).seen.size(),
            2U);
  malformed(kPost + "Upgrade: x\r\nContent-Length: 5\r\n\r\n");
  malformed(kPost + "Upgrade: websocket\r\nTransfer-Encoding: chunked\r\n\r\n");
}

TEST(HttpRequests, connect_is_reported_and_waits) {
  const Connection connection =
      after("CONNECT B.example:443 HTTP/1.1\r\nHost: b.example:443\r\n\r\nanything");
  ASSERT_EQ(connection.seen.size(), 1U);
  EXPECT_TRUE(connection.seen[0].connect);
  EXPECT_EQ(connection.seen[0].host, (HttpHost{.name = "b.example", .port = 443}));
  EXPECT_EQ(connection.held, "anything");
  EXPECT_EQ(connection.last.kind, Kind::waiting);
  EXPECT_EQ(after("CONNECT b:443 HTTP/1.1\r\nHost: b\r\n\r\n").seen.size(), 1U);
  malformed("CONNECT b:443 HTTP/1.1\r\nHost: a.example\r\n\r\n");
  malformed("CONNECT b:443 HTTP/1.1\r\nHost: b:80\r\n\r\n");
  malformed("CONNECT b HTTP/1.1\r\nHost: b\r\n\r\n");
  malformed("CONNECT /x HTTP/1.1\r\nHost: b\r\n\r\n");
}

TEST(HttpRequests, an_end_is_for_ever) {
  Connection connection = after(kPlain + "GET /\r\n");
  EXPECT_EQ(connection.last.kind, Kind::malformed);
  const std::string reason = connection.last.reason;
  connection.held.clear();
  connection.receive(kPlain);
  EXPECT_EQ(connection.last.kind, Kind::malformed);
  EXPECT_EQ(connection.last.reason, reason);
  EXPECT_EQ(connection.passed, kPlain);
}

}  // namespace
}  // namespace belljar::broker
