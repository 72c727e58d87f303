#include "broker/tls_message.h"

#include <algorithm>
#include <optional>

namespace belljar::broker {
namespace {

constexpr std::size_t kHandshakeHeader = 4;
constexpr std::size_t kMaxRecord = std::size_t{1} << 14;

using Kind = TlsMessage::Kind;

TlsMessage malformed(std::string_view reason) {
  return {.kind = Kind::malformed, .reason = std::string(reason)};
}

class Records {
 public:
  Records(Bytes so_far, unsigned type, std::size_t longest)
      : so_far_(so_far), type_(type), longest_(longest) {}

  TlsMessage read() {
    for (;;) {
      if (std::optional<TlsMessage> message = header()) return *std::move(message);
      if (std::optional<TlsMessage> message = content()) return *std::move(message);
    }
  }

 private:
  std::optional<TlsMessage> header() {
    const Bytes rest = so_far_.subspan(at_);
    const bool is_handshake =
        rest.empty() || rest[0] == static_cast<std::byte>(TlsRecord::handshake);
    const bool is_tls = rest.size() < 2 || rest[1] == std::byte{3};
    if (!is_handshake || !is_tls) {
      if (at_ == 0) return TlsMessage{.kind = Kind::not_tls, .reason = "no TLS record"};
      return malformed("another record inside the hello");
    }
    if (at_ == 0 && rest.size() < 2) return need(rest.size() + 1);  // so that others do not wait
    if (rest.size() < kTlsRecordHeader) return need(at_ + kTlsRecordHeader + missing());
    Reader reader(rest);
    reader.take(3);
    record_ = reader.u16();
    if (record_ == 0 || record_ > kMaxRecord) return malformed("a record of a wrong size");
    at_ += kTlsRecordHeader;
    return std::nullopt;
  }

  std::optional<TlsMessage> content() {
    const Bytes there = so_far_.subspan(at_);
    const Bytes part = there.first(std::min(record_, there.size()));
    const std::size_t end = message_.size() + record_;
    message_.insert(message_.end(), part.begin(), part.end());
    Reader reader(message_);
    if (!message_.empty() && reader.u8() != type_)
      return malformed("a handshake message that is no hello");
    if (message_.size() >= kHandshakeHeader) wanted_ = kHandshakeHeader + reader.u24();
    if (wanted_ + kTlsRecordHeader > longest_ || at_ + record_ > longest_)
      return malformed("longer than 64 KiB");
    if (message_.size() >= kHandshakeHeader && message_.size() >= wanted_)
      return TlsMessage{.kind = Kind::complete,
                        .body = {message_.begin() + kHandshakeHeader,
                                 message_.begin() + static_cast<std::ptrdiff_t>(wanted_)},
                        .size = at_ + record_,
                        .behind = end - wanted_};
    if (part.size() == record_) {
      at_ += record_;
      return std::nullopt;
    }
    const std::size_t to_come = record_ - part.size();
    return need(so_far_.size() + missing() + (to_come < missing() ? kTlsRecordHeader : 0));
  }

  std::size_t missing() const { return wanted_ - std::min(wanted_, message_.size()); }

  TlsMessage need(std::size_t at_least) const {
    if (at_least > longest_) return malformed("longer than 64 KiB");
    return {.kind = Kind::need_more, .at_least = at_least};
  }

  Bytes so_far_;
  unsigned type_;
  std::size_t longest_;
  std::size_t at_ = 0;                     // where the current record, then its content begins
  std::size_t record_ = 0;                 // its size
  std::size_t wanted_ = kHandshakeHeader;  // size of the message, once that is known
  std::vector<std::byte> message_;
};

}  // namespace

TlsMessage read_tls_message(Bytes so_far, unsigned type, std::size_t longest) {
  return Records(so_far, type, longest).read();
}

}  // namespace belljar::broker
