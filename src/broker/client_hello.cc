#include "broker/client_hello.h"

#include <bitset>
#include <expected>

#include "broker/tls_message.h"
#include "policy/host_name.h"

namespace belljar::broker {
namespace {

constexpr std::size_t kMaxSessionId = 32;
constexpr std::size_t kMaxProtocols = 64;  // of ALPN; browsers send three

constexpr unsigned kClientHello = 1;  // a type of handshake message

constexpr unsigned kServerName = 0;
constexpr unsigned kAlpn = 16;

// The one of the RFC, those of its drafts, and that of its forerunner.
bool is_encrypted_hello(unsigned extension) {
  return (extension >= 0xfe08 && extension <= 0xfe0d) || extension == 0xffce;
}

using Kind = HelloVerdict::Kind;

HelloVerdict malformed(std::string_view reason) {
  return {.kind = Kind::malformed, .reason = "a TLS hello that is wrong: " + std::string(reason)};
}

// ---- the message ----

using Wrong = std::unexpected<const char*>;

std::expected<std::string, const char*> read_server_name(Bytes extension) {
  Reader reader(extension);
  Reader list(reader.take(reader.u16()));
  const bool is_host_name = list.u8() == 0;
  const Bytes text = list.take(list.u16());
  if (!reader.ok() || !reader.at_end() || !list.ok()) return Wrong("server_name: cut off");
  if (!is_host_name) return Wrong("server_name: of an unknown kind");
  if (!list.at_end()) return Wrong("server_name: more than one");
  // The trailing dot is not to be sent, and servers differ about it.
  Result<std::string> name = canonical_wire_name(as_text(text));
  if (!name || as_text(text).ends_with('.')) return Wrong("server_name: no host name");
  return *std::move(name);
}

std::expected<std::vector<std::string>, const char*> read_alpn(Bytes extension) {
  Reader reader(extension);
  Reader list(reader.take(reader.u16()));
  if (!reader.ok() || !reader.at_end() || list.at_end()) return Wrong("ALPN: cut off");
  std::vector<std::string> protocols;
  while (!list.at_end()) {
    const Bytes protocol = list.take(list.u8());
    if (!list.ok() || protocol.empty()) return Wrong("ALPN: cut off");
    if (protocols.size() == kMaxProtocols) return Wrong("ALPN: too many protocols");
    protocols.emplace_back(as_text(protocol));
  }
  return protocols;
}

std::expected<ClientHello, const char*> read_extensions(Bytes extensions) {
  ClientHello hello;
  std::bitset<65536> seen;
  Reader reader(extensions);
  while (!reader.at_end()) {
    const unsigned type = reader.u16();
    const Bytes extension = reader.take(reader.u16());
    if (!reader.ok()) return Wrong("an extension is cut off");
    if (seen.test(type)) return Wrong("an extension comes twice");
    seen.set(type);
    if (is_encrypted_hello(type)) hello.encrypted_client_hello = true;
    if (type == kServerName) {
      auto name = read_server_name(extension);
      if (!name) return Wrong(name.error());
      hello.server_name = *std::move(name);
    }
    if (type == kAlpn) {
      auto protocols = read_alpn(extension);
      if (!protocols) return Wrong(protocols.error());
      hello.alpn = *std::move(protocols);
    }
  }
  return hello;
}

std::expected<ClientHello, const char*> read_body(Bytes body) {
  Reader reader(body);
  const unsigned version = reader.u16();
  reader.take(32);  // random
  const Bytes session = reader.take(reader.u8());
  const Bytes ciphers = reader.take(reader.u16());
  const Bytes compressions = reader.take(reader.u8());
  if (!reader.ok()) return Wrong("cut off");
  if (version >> 8U != 3) return Wrong("an unknown version");
  if (session.size() > kMaxSessionId) return Wrong("a session id that is too long");
  if (ciphers.empty() || ciphers.size() % 2 != 0) return Wrong("a wrong list of ciphers");
  if (compressions.empty()) return Wrong("no compression method");
  if (reader.at_end()) return ClientHello{};  // as before there were extensions
  const Bytes extensions = reader.take(reader.u16());
  if (!reader.ok()) return Wrong("its extensions are cut off");
  if (!reader.at_end()) return Wrong("bytes behind its extensions");
  return read_extensions(extensions);
}

// Some servers still accept a hello in the form of SSL 2, which names no server. Returns how many
// bytes are needed to be sure that this is one, or 0 if it is not.
std::size_t looks_like_ssl2(Bytes so_far) {
  constexpr unsigned kLong = 0x80, kShortest = 9;
  Reader reader(so_far);
  const unsigned high = reader.u8(), low = reader.u8(), type = reader.u8(), version = reader.u16();
  const std::size_t there = so_far.size();
  if (there >= 1 && high < kLong) return 0;
  if (there >= 2 && ((high - kLong) << 8U | low) < kShortest) return 0;
  if (there >= 3 && type != kClientHello) return 0;
  if (there >= 5 && version >> 8U != 3 && version != 2) return 0;
  return 5;
}

}  // namespace

HelloVerdict read_client_hello(Bytes so_far) {
  const TlsMessage message = read_tls_message(so_far, kClientHello, kMaxClientHello);
  switch (message.kind) {
    case TlsMessage::Kind::need_more:
      return {.kind = Kind::need_more, .at_least = message.at_least};
    case TlsMessage::Kind::not_tls:
      if (const std::size_t enough = looks_like_ssl2(so_far); so_far.size() < enough)
        return {.kind = Kind::need_more, .at_least = so_far.size() + 1};
      else if (enough > 0)
        return malformed("in the form of SSL 2");
      return {.kind = Kind::not_tls, .reason = message.reason};
    case TlsMessage::Kind::malformed:
      return malformed(message.reason);
    case TlsMessage::Kind::complete:
      break;
  }
  if (message.behind != 0) return malformed("bytes behind the hello in its record");
  std::expected<ClientHello, const char*> hello = read_body(message.body);
  if (!hello) return malformed(hello.error());
  return {.kind = Kind::complete, .hello = *std::move(hello), .size = message.size};
}

}  // namespace belljar::broker
