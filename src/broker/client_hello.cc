#include "broker/client_hello.h"

#include <algorithm>
#include <bitset>
#include <expected>

#include "policy/host_name.h"

namespace belljar::broker {
namespace {

constexpr std::size_t kRecordHeader = 5;
constexpr std::size_t kHandshakeHeader = 4;
constexpr std::size_t kMaxRecord = std::size_t{1} << 14;
constexpr std::size_t kMaxSessionId = 32;
constexpr std::size_t kMaxProtocols = 64;  // of ALPN; browsers send three

constexpr unsigned kHandshake = 22;   // a type of record
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

// ---- the records that carry it ----

// A hello may lie in as many records as the guest likes, and the last one ends where it does.
class Records {
 public:
  explicit Records(Bytes so_far) : so_far_(so_far) {}

  HelloVerdict read() {
    for (;;) {
      if (std::optional<HelloVerdict> verdict = header()) return *std::move(verdict);
      if (std::optional<HelloVerdict> verdict = content()) return *std::move(verdict);
    }
  }

 private:
  std::optional<HelloVerdict> header() {
    const Bytes rest = so_far_.subspan(at_);
    const bool is_handshake = rest.empty() || rest[0] == std::byte{kHandshake};
    const bool is_tls = rest.size() < 2 || rest[1] == std::byte{3};
    if (!is_handshake || !is_tls) {
      if (at_ == 0) return HelloVerdict{.kind = Kind::not_tls, .reason = "no TLS record"};
      return malformed("another record inside the hello");
    }
    if (at_ == 0 && rest.size() < 2) return need(rest.size() + 1);  // so that others do not wait
    if (rest.size() < kRecordHeader) return need(at_ + kRecordHeader + missing());
    Reader reader(rest);
    reader.take(3);
    record_ = reader.u16();
    if (record_ == 0 || record_ > kMaxRecord) return malformed("a record of a wrong size");
    at_ += kRecordHeader;
    return std::nullopt;
  }

  std::optional<HelloVerdict> content() {
    const Bytes there = so_far_.subspan(at_);
    const Bytes part = there.first(std::min(record_, there.size()));
    const std::size_t end = message_.size() + record_;
    message_.insert(message_.end(), part.begin(), part.end());
    Reader reader(message_);
    if (!message_.empty() && reader.u8() != kClientHello)
      return malformed("a handshake message that is no hello");
    if (message_.size() >= kHandshakeHeader) wanted_ = kHandshakeHeader + reader.u24();
    if (wanted_ + kRecordHeader > kMaxClientHello || at_ + record_ > kMaxClientHello)
      return malformed("longer than 64 KiB");
    if (message_.size() >= kHandshakeHeader && end > wanted_)
      return malformed("bytes behind the hello in its record");
    if (message_.size() >= kHandshakeHeader && message_.size() == wanted_)
      return judge(reader.rest());
    if (part.size() == record_) {
      at_ += record_;
      return std::nullopt;
    }
    const std::size_t to_come = record_ - part.size();
    return need(so_far_.size() + missing() + (to_come < missing() ? kRecordHeader : 0));
  }

  std::size_t missing() const { return wanted_ - std::min(wanted_, message_.size()); }

  static HelloVerdict need(std::size_t at_least) {
    if (at_least > kMaxClientHello) return malformed("longer than 64 KiB");
    return {.kind = Kind::need_more, .at_least = at_least};
  }

  static HelloVerdict judge(Bytes body) {
    std::expected<ClientHello, const char*> hello = read_body(body);
    if (!hello) return malformed(hello.error());
    return {.kind = Kind::complete, .hello = *std::move(hello)};
  }

  Bytes so_far_;
  std::size_t at_ = 0;                     // where the current record, then its content begins
  std::size_t record_ = 0;                 // its size
  std::size_t wanted_ = kHandshakeHeader;  // size of the message, once that is known
  std::vector<std::byte> message_;
};

}  // namespace

HelloVerdict read_client_hello(Bytes so_far) { return Records(so_far).read(); }

}  // namespace belljar::broker
