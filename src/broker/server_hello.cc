#include "broker/server_hello.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <expected>

#include "broker/tls_message.h"

namespace belljar::broker {
namespace {

constexpr unsigned kServerHello = 2;  // a type of handshake message
constexpr std::size_t kRandom = 32;
constexpr unsigned kSupportedVersions = 43;
constexpr unsigned kTls13 = 0x0304;

// A HelloRetryRequest is a ServerHello with this random: the SHA-256 of its name.
constexpr std::array<unsigned char, kRandom> kRetry = {
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
    0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c};

using Kind = ServerHelloVerdict::Kind;
using Wrong = std::unexpected<const char*>;

ServerHelloVerdict malformed(const std::string& reason) {
  return {.kind = Kind::malformed, .reason = "the server's answer is no TLS hello: " + reason};
}

// The version that was chosen; nothing where it stands in the field of older ones.
std::expected<bool, const char*> chooses_1_3(Bytes extensions) {
  bool chosen = false;
  std::bitset<65536> seen;
  Reader reader(extensions);
  while (!reader.at_end()) {
    const unsigned type = reader.u16();
    Reader extension(reader.take(reader.u16()));
    if (!reader.ok()) return Wrong("an extension is cut off");
    if (seen.test(type)) return Wrong("an extension comes twice");
    seen.set(type);
    if (type != kSupportedVersions) continue;
    chosen = extension.u16() == kTls13;
    if (!extension.ok() || !extension.at_end()) return Wrong("a version of a wrong size");
  }
  return chosen;
}

std::expected<ServerHello, const char*> read_body(Bytes body) {
  Reader reader(body);
  const unsigned version = reader.u16();
  const Bytes random = reader.take(kRandom);
  reader.take(reader.u8());  // the session
  reader.take(3);            // the cipher, and the compression
  if (!reader.ok()) return Wrong("cut off");
  if (version >> 8U != 3) return Wrong("an unknown version");
  ServerHello hello;
  hello.is_retry = std::ranges::equal(random, std::as_bytes(std::span(kRetry)));
  if (reader.at_end()) return hello;
  const Bytes extensions = reader.take(reader.u16());
  if (!reader.ok() || !reader.at_end()) return Wrong("extensions of a wrong size");
  const auto is_1_3 = chooses_1_3(extensions);
  if (!is_1_3) return Wrong(is_1_3.error());
  hello.is_1_3 = *is_1_3;
  return hello;
}

}  // namespace

ServerHelloVerdict read_server_hello(Bytes so_far) {
  const TlsMessage message = read_tls_message(so_far, kServerHello, kMaxServerHello);
  switch (message.kind) {
    case TlsMessage::Kind::need_more:
      return {.kind = Kind::need_more, .at_least = message.at_least};
    case TlsMessage::Kind::not_tls:
    case TlsMessage::Kind::malformed:
      return malformed(message.reason);
    case TlsMessage::Kind::complete:
      break;
  }
  const std::expected<ServerHello, const char*> hello = read_body(message.body);
  if (!hello) return malformed(hello.error());
  // The client has to answer first. (Behind another hello the certificate may follow.)
  if (hello->is_retry && (!hello->is_1_3 || message.behind != 0))
    return malformed("a retry request of a wrong form");
  return {.kind = Kind::complete, .hello = *hello, .size = message.size};
}

}  // namespace belljar::broker
