#include "broker/gate.h"

#include <sys/socket.h>

#include "base/syscall.h"
#include "broker/upgrade_answer.h"

namespace belljar::broker {
namespace {

constexpr std::size_t kMaxChunk = std::size_t{128} << 10;
constexpr std::uint16_t kHttp = 80;
constexpr std::uint16_t kHttps = 443;

ssize_t receive(Stream& from, std::span<std::byte> into) {
  return retry(
      [&] { return ::recv(from.native_handle(), into.data(), into.size(), MSG_DONTWAIT); });
}

}  // namespace

Async<void> Gate::pass() {
  bool goes = co_await pass_tls();
  if (goes && speech_ != Speech::tls) {
    goes = co_await pass_requests();
  }
  if (!goes) {
    if (!ended_) link_.cut();
    co_return;
  }
  speech_ = Speech::opaque;
  if (!co_await send_all(link_, link_.outside, held_)) co_return;
  held_ = {};
  co_await pump(link_, link_.guest, link_.outside, pipes_);
}

Async<bool> Gate::read_more() {
  for (;;) {
    const std::size_t before = held_.size();
    held_.resize(before + chunk_);
    const ssize_t n = receive(link_.guest, std::span(held_).subspan(before));
    const bool waits = n < 0 && errno == EAGAIN;
    held_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    if (n == static_cast<ssize_t>(chunk_)) chunk_ = std::min(2 * chunk_, kMaxChunk);
    if (n > 0) co_return true;
    ended_ = n == 0 && held_.empty();
    if (ended_) ::shutdown(link_.outside.native_handle(), SHUT_WR);
    if (held_.empty()) held_ = {};  // a connection that is silent needs no memory
    if (!waits || !co_await readable(link_.guest)) co_return false;
  }
}

Async<bool> Gate::pass_on(std::size_t size) {
  const bool sent = co_await send_all(link_, link_.outside, std::span(held_).first(size));
  if (sent) held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(size));
  co_return sent;
}

// Follows TLS until no other name can come. True also where it is no TLS.
Async<bool> Gate::pass_tls() {
  using Kind = TlsTalk::Kind;
  for (;;) {
    const TlsTalk::Step step = tls_.hear_guest(held_);
    switch (step.kind) {
      case Kind::need_more:
        if (!co_await read_more()) co_return false;
        continue;
      case Kind::not_tls:
        if (endpoint_.port == kHttps) co_return refuse({}, "what is said on port 443 is not TLS");
        co_return true;
      case Kind::open:
        co_return true;
      case Kind::refused:
        co_return refuse({}, step.reason);
      case Kind::hello:
        speech_ = Speech::tls;
        if (!is_allowed(step.hello)) co_return false;
        break;
      case Kind::pass:
        break;
    }
    if (!co_await pass_on(step.pass)) co_return false;
  }
}

// Follows HTTP until it is no longer HTTP.
Async<bool> Gate::pass_requests() {
  using Kind = HttpRequests::Kind;
  HttpRequests requests;
  for (;;) {
    const HttpRequests::Step step = requests.feed(held_);
    switch (step.kind) {
      case Kind::need_more:
        if (!co_await read_more()) co_return false;
        continue;
      case Kind::request:
        if (!co_await pass_request(step)) co_return false;
        break;
      case Kind::body:
        break;
      case Kind::waiting:
        while (upgrade_ == Upgrade::asked) co_await answered_.wait();
        if (upgrade_ == Upgrade::done) co_return true;
        if (link_.broken) co_return false;
        requests.continue_as_http();
        continue;
      case Kind::http2:
        co_return refuse({}, "HTTP/2 without TLS, whose requests cannot be followed");
      case Kind::not_http:
        if (endpoint_.port == kHttp) co_return refuse({}, "what is said on port 80 is not HTTP");
        // Another protocol, of which only the address is known.
        events_.add(event_about(endpoint_, "tcp", decision_, program_));
        co_return true;
      case Kind::malformed:
        co_return refuse({}, "HTTP: " + std::string(step.reason));
    }
    if (!co_await pass_on(step.pass)) co_return false;
  }
}

Async<bool> Gate::pass_request(const HttpRequests::Step& step) {
  const HttpRequest& request = step.request;
  speech_ = Speech::http;
  if (request.connect) co_return refuse(request.host.name, "HTTP: CONNECT leads to another host");
  if (request.host.address) co_return refuse(request.host.name, "HTTP: the Host is an address");
  if (request.upgrade) {
    if (!first_request_) co_return refuse(request.host.name, "HTTP: Upgrade in a later request");
    upgrade_ = Upgrade::asked;
  }
  first_request_ = false;
  co_return is_allowed(request.host.name);
}

Async<void> Gate::answer() {
  co_await listen();
  // Whoever waits for an answer gets none any more.
  if (upgrade_ == Upgrade::asked) upgrade_ = Upgrade::refused;
  answered_.raise();
}

Async<void> Gate::listen() {
  const auto matters = [this] {
    return speech_ != Speech::opaque && (speech_ != Speech::tls || !tls_.has_heard_server());
  };
  while (matters() && co_await readable(link_.outside)) {
    if (!matters()) break;
    std::vector<std::byte> buffer(kFirstChunk);  // here: connections that are silent need none
    const ssize_t n = receive(link_.outside, buffer);
    if (n < 0 && errno == EAGAIN) continue;
    if (n < 0) co_return link_.cut();
    if (n == 0) {
      ::shutdown(link_.guest.native_handle(), SHUT_WR);
      co_return;
    }
    const auto got = std::span(buffer).first(static_cast<std::size_t>(n));
    if (speech_ != Speech::http) tls_.hear_server(got);
    if (upgrade_ == Upgrade::asked) look_for_upgrade(got);
    if (!co_await send_all(link_, link_.guest, got)) co_return;
  }
  if (!link_.broken) co_await pump(link_, link_.outside, link_.guest, pipes_);
}

void Gate::look_for_upgrade(std::span<const std::byte> answer) {
  upgrade_answer_ += as_text(answer);
  const std::optional<bool> agreed = agrees_to_websocket(upgrade_answer_);
  if (!agreed) return;
  upgrade_ = *agreed ? Upgrade::done : Upgrade::refused;
  upgrade_answer_ = {};
  answered_.raise();
}

bool Gate::is_allowed(const ClientHello& hello) {
  const std::string name = hello.server_name.value_or("");
  if (name.empty()) return refuse({}, "TLS without a server name");
  if (hello.encrypted_client_hello)
    return refuse(name, "TLS with an encrypted hello, which may name another server");
  return is_allowed(name);
}

bool Gate::is_allowed(const std::string& name) {
  const Verdict verdict = judge_.rules().name(name, endpoint_.port);
  if (!verdict.allowed) return refuse(name, verdict.why);
  if (noted_ == name) return true;
  noted_ = name;
  events_.add(event_about(endpoint_, "tcp", {Way::name, verdict, {name}}, program_));
  return true;
}

bool Gate::refuse(const std::string& name, std::string why) {
  Decision decision{Way::refused, {.allowed = false, .rule = {}, .why = std::move(why)}, {}};
  if (!name.empty()) decision.names.push_back(name);
  NetworkEvent event = event_about(endpoint_, "tcp", decision, program_);
  if (name.empty()) event.would_allow = rule_that_would_allow(endpoint_.address, endpoint_.port);
  events_.add(std::move(event));
  return false;
}

}  // namespace belljar::broker
