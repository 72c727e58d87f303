#include "broker/tls_talk.h"

#include <algorithm>
#include <utility>

#include "broker/tls_message.h"

namespace belljar::broker {
namespace {

constexpr unsigned kClientHello = 1;  // a type of handshake message
constexpr std::size_t kMessageHeader = 4;
constexpr std::size_t kMaxRecord = (std::size_t{1} << 14) + 2048;  // encrypted
// The largest record of a Finished alone: 16 bytes, encrypted by AES in CBC mode with SHA-384. A
// hello behind it in the same record would make it larger.
constexpr std::size_t kMaxFinished = 96;

constexpr char kRenegotiation[] = "TLS: a second handshake, which may name another server";

TlsRecord type_of(Bytes record) {
  return static_cast<TlsRecord>(std::to_integer<unsigned>(record.front()));
}

std::size_t size_of(Bytes header) {
  Reader reader(header);
  reader.take(3);
  return reader.u16();
}

}  // namespace

TlsTalk::Step TlsTalk::hear_guest(Bytes held) {
  switch (state_) {
    case State::hello:
      return first_hello(held);
    case State::unanswered:
    case State::retry:
    case State::older:
      return records(held);
    case State::open:
      return {.kind = Kind::open};
    case State::refused:
      break;
  }
  return {.kind = Kind::refused, .reason = reason_};
}

TlsTalk::Step TlsTalk::first_hello(Bytes held) {
  using Verdict = HelloVerdict::Kind;
  if (held.size() < wanted_) return {};
  HelloVerdict verdict = read_client_hello(held);
  wanted_ = verdict.at_least;
  if (verdict.kind == Verdict::need_more) return {};
  if (verdict.kind == Verdict::not_tls) return {.kind = Kind::not_tls};
  if (verdict.kind == Verdict::malformed) return refuse("TLS: " + verdict.reason);
  if (server_spoke_first_) return refuse("TLS: a hello in the middle of another protocol");
  name_ = verdict.hello.server_name.value_or("");
  state_ = State::unanswered;
  return {.kind = Kind::hello, .pass = verdict.size, .hello = std::move(verdict.hello)};
}

TlsTalk::Step TlsTalk::second_hello(Bytes held) {
  using Verdict = HelloVerdict::Kind;
  if (held.size() < wanted_) return {};
  HelloVerdict verdict = read_client_hello(held);
  wanted_ = verdict.at_least;
  if (verdict.kind == Verdict::need_more) return {};
  if (verdict.kind != Verdict::complete) return refuse("TLS: " + verdict.reason);
  // All but a few extensions is to be the same (RFC 8446, 4.1.2). Servers choose a site by this
  // one.
  if (verdict.hello.server_name.value_or("") != name_)
    return refuse("TLS: a second hello that names another server");
  state_ = State::unanswered;
  return {.kind = Kind::hello, .pass = verdict.size, .hello = std::move(verdict.hello)};
}

// As many bytes as may pass.
TlsTalk::Step TlsTalk::records(Bytes held) {
  std::size_t at = 0;
  while (at < held.size()) {
    const Bytes rest = held.subspan(at);
    if (left_ > 0) {
      const Bytes content = rest.first(std::min(left_, rest.size()));
      if (in_clear_ && !follow_messages(content)) return refuse(kRenegotiation);
      left_ -= content.size();
      at += content.size();
      continue;
    }
    if (state_ == State::retry && type_of(rest) == TlsRecord::handshake) {
      if (at == 0) return second_hello(rest);
      break;
    }
    if (rest.size() < kTlsRecordHeader) break;
    if (!begin_record(rest.first(kTlsRecordHeader)))
      return {.kind = Kind::refused, .reason = reason_};
    at += kTlsRecordHeader;
  }
  if (at == 0) return {};
  return {.kind = Kind::pass, .pass = at};
}

// False: refused.
bool TlsTalk::begin_record(Bytes header) {
  left_ = size_of(header);
  in_clear_ = false;
  if (header[1] != std::byte{3} || left_ > kMaxRecord) {
    refuse("TLS: a record that is wrong");
    return false;
  }
  switch (type_of(header)) {
    case TlsRecord::data:
    case TlsRecord::alert:
      return true;
    case TlsRecord::change_cipher:
      ciphered_ = true;
      return true;
    case TlsRecord::handshake:
      return begin_handshake(left_);
  }
  refuse("TLS: a record of an unknown type");
  return false;
}

bool TlsTalk::begin_handshake(std::size_t size) {
  if (state_ == State::unanswered) {
    refuse("TLS: a second hello that the server did not ask for");
    return false;
  }
  in_clear_ = !ciphered_;
  if (in_clear_) return true;
  if (finished_ || size > kMaxFinished) {
    refuse(kRenegotiation);
    return false;
  }
  finished_ = true;
  return true;
}

// False: there is a hello among them.
bool TlsTalk::follow_messages(Bytes content) {
  while (!content.empty()) {
    if (message_ > 0) {
      const std::size_t size = std::min(message_, content.size());
      message_ -= size;
      content = content.subspan(size);
      continue;
    }
    message_header_.push_back(content.front());
    content = content.subspan(1);
    if (message_header_.front() == std::byte{kClientHello}) return false;
    if (message_header_.size() < kMessageHeader) continue;
    Reader reader(message_header_);
    reader.take(1);
    message_ = reader.u24();
    message_header_.clear();
  }
  return true;
}

void TlsTalk::hear_server(Bytes bytes) {
  if (state_ == State::hello) server_spoke_first_ = true;
  if (state_ == State::hello || has_heard_server()) return;
  server_.insert(server_.end(), bytes.begin(), bytes.end());
  while (!has_heard_server() && hear_server_record()) {
  }
  if (has_heard_server()) server_ = {};
}

// False: nothing more can be understood now.
bool TlsTalk::hear_server_record() {
  const std::size_t skipped = std::min(server_skip_, server_.size());
  server_.erase(server_.begin(), server_.begin() + static_cast<std::ptrdiff_t>(skipped));
  server_skip_ -= skipped;
  if (server_.empty() || server_.size() < server_wanted_) return false;
  // Warnings may come before a hello. After a retry request old relays are soothed by a change.
  const TlsRecord type = type_of(server_);
  if (type == TlsRecord::alert || (type == TlsRecord::change_cipher && retried_)) {
    if (server_.size() < kTlsRecordHeader) return false;
    server_skip_ = kTlsRecordHeader + size_of(server_);
    return true;
  }
  const ServerHelloVerdict verdict = read_server_hello(server_);
  server_wanted_ = verdict.at_least;
  if (verdict.kind == ServerHelloVerdict::Kind::need_more) return false;
  if (verdict.kind == ServerHelloVerdict::Kind::malformed)
    refuse("TLS: " + verdict.reason);
  else
    take_server_hello(verdict.hello);
  server_skip_ = verdict.size;
  return true;
}

void TlsTalk::take_server_hello(const ServerHello& hello) {
  if (state_ != State::unanswered) {
    refuse("TLS: an answer of the server to a hello that it has not got");
  } else if (!hello.is_retry) {
    state_ = hello.is_1_3 ? State::open : State::older;
  } else if (std::exchange(retried_, true)) {
    refuse("TLS: the server asks for a third hello");
  } else {
    state_ = State::retry;
  }
}

TlsTalk::Step TlsTalk::refuse(std::string reason) {
  state_ = State::refused;
  reason_ = std::move(reason);
  return {.kind = Kind::refused, .reason = reason_};
}

}  // namespace belljar::broker
