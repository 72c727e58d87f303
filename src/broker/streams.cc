#include "broker/streams.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/post.hpp>

#include "base/syscall.h"
#include "broker/bind.h"
#include "broker/gate.h"

namespace belljar::broker {
namespace {

// NOLINTNEXTLINE(misc-unused-using-decls): clang-tidy does not see what is inside co_await
using asio::experimental::awaitable_operators::operator&&;

// How long a connect that does not wait is held back: so long a near host takes to
// refuse, and the guest then learns it as it would outside. After that it goes on, and a
// refusal that comes later is a reset.
constexpr std::chrono::milliseconds kBrief{20};
// A listener that nobody used for so long is closed: the port may be the guest's again.
constexpr std::chrono::seconds kIdle{10};
constexpr int kBacklog = 1024;
// How long what a guest has said may take to go on after its end.
constexpr std::chrono::seconds kLastWords{1};

constexpr char kCrowd[] =
    "too many connections at once; close some, or raise ulimit -n for belljar";

void send_at_once(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

int family_of(const Endpoint& endpoint) { return endpoint.address.is_v4() ? AF_INET : AF_INET6; }

// What became of a connect.
int error_of(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0 ? errno : error;
}

// A near host has often answered before we could wait for it.
bool is_settled(int fd) {
  pollfd ready{.fd = fd, .events = POLLOUT, .revents = 0};
  return ::poll(&ready, 1, 0) > 0;
}

}  // namespace

Async<Prepared> Streams::prepare(Endpoint endpoint, Way way, bool patient, Program program) {
  const std::shared_ptr<Upstream> upstream = open_outside(endpoint, way);
  upstream->program = std::move(program);
  const int err = co_await listen_at(endpoint, way);
  // The guest's own server has the port: on its loopback that is whom it means.
  if (err == EADDRINUSE && way == Way::localhost) co_return Prepared{};
  if (err != 0) co_return Prepared{err};
  if (!upstream->done) {
    upstream->settled.expires_at(patient ? Clock::time_point::max() : Clock::now() + kBrief);
    co_await upstream->settled.async_wait(kAwait);
  }
  if (upstream->done && upstream->error != 0) co_return Prepared{upstream->error};
  const auto at = listeners_.find(endpoint);
  if (at == listeners_.end()) co_return Prepared{ECONNREFUSED};  // it waited too long
  at->second->used = Clock::now();
  // The guest's socket is connected there by this thread, which must not wait for itself to make
  // room among those that have arrived.
  if (at->second->detour) accept_all(endpoint, *at->second);
  at->second->upstreams.push_back(upstream);
  co_return Prepared{0, at->second->detour};
}

std::shared_ptr<Upstream> Streams::open_outside(Endpoint endpoint, Way way) {
  auto upstream = std::make_shared<Upstream>(loop_);
  const Endpoint to = outside_of(endpoint, way);
  Fd socket(::socket(family_of(to), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  std::optional<Allowance::Share> share = allowance_.take(2, socket.get());
  if (!share) {
    note_crowd(endpoint);
    upstream->done = true;
    upstream->error = ENOBUFS;
    return upstream;
  }
  upstream->share = *std::move(share);
  const SocketAddress address = to.to_socket_address();
  const int result = socket ? ::connect(socket.get(), address.get(), address.size) : -1;
  int err = result < 0 ? errno : 0;
  if (socket) send_at_once(socket.get());
  if (err == EINPROGRESS && !is_settled(socket.get())) {
    upstream->stream.assign(socket.release());
    begin(loop_, finish_connect(upstream));
    return upstream;
  }
  if (err == EINPROGRESS) err = error_of(socket.get());
  upstream->socket = std::move(socket);
  upstream->done = true;
  upstream->error = err;
  return upstream;
}

Async<void> Streams::finish_connect(std::shared_ptr<Upstream> upstream) {
  (void)co_await writable(upstream->stream);
  upstream->error = error_of(upstream->stream.native_handle());
  upstream->done = true;
  upstream->settled.cancel();
}

Async<int> Streams::listen_at(Endpoint endpoint, Way way) {
  if (listeners_.contains(endpoint)) co_return 0;
  Fd socket = co_await sockets_.get(family_of(endpoint), SOCK_STREAM);
  if (listeners_.contains(endpoint)) co_return 0;  // made while we waited
  if (!socket) co_return ENETUNREACH;
  std::optional<Allowance::Share> share = allowance_.take(1, socket.get());
  if (!share) {
    note_crowd(endpoint);
    co_return ENOBUFS;
  }
  std::optional<Endpoint> detour;
  int err = bind_anywhere(socket.get(), endpoint);
  if (err == EADDRINUSE && way != Way::localhost) {
    detour = bind_to_some_port(socket.get(), endpoint.address.is_v4());
    if (detour) err = 0;
  }
  if (err == 0 && ::listen(socket.get(), kBacklog) < 0) err = errno;
  if (err != 0) co_return err;
  auto listener = std::make_shared<Listener>(loop_, std::move(socket));
  listener->detour = detour;
  listener->share = *std::move(share);
  listeners_[endpoint] = listener;
  begin(loop_, accept_at(endpoint, listener));
  if (!std::exchange(sweeping_, true)) begin(loop_, sweep());
  co_return 0;
}

void Streams::accept_all(const Endpoint& endpoint, Listener& listener) {
  for (;;) {
    Fd guest(
        ::accept4(listener.stream.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!guest) return;
    listener.used = Clock::now();
    std::shared_ptr<Upstream> upstream;
    if (!listener.upstreams.empty()) {
      upstream = std::move(listener.upstreams.front());
      listener.upstreams.pop_front();
    }
    begin(loop_, serve(std::move(guest), endpoint, std::move(upstream)));
  }
}

Async<void> Streams::accept_at(Endpoint endpoint, std::shared_ptr<Listener> listener) {
  while (co_await readable(listener->stream)) {
    accept_all(endpoint, *listener);
    if (errno == EMFILE || errno == ENFILE) {  // until connections have ended
      asio::steady_timer wait(loop_, kBrief);
      co_await wait.async_wait(kAwait);
    }
  }
}

Async<void> Streams::pass_guests(Async<void> task, std::unique_ptr<Speaking> speaking) {
  co_await std::move(task);
  speaking.reset();
}

Async<void> Streams::finish() {
  for (auto& [endpoint, listener] : listeners_) accept_all(endpoint, *listener);
  // Those have been begun, and count before this goes on.
  co_await asio::post(kAwait);
  if (crowd_->speaking == 0) co_return;
  asio::steady_timer silent(loop_, kLastWords);
  crowd_->silent = &silent;
  co_await silent.async_wait(kAwait);
  crowd_->silent = nullptr;
}

Async<void> Streams::serve(Fd guest, Endpoint endpoint, std::shared_ptr<Upstream> upstream) {
  auto speaking = std::make_unique<Speaking>(crowd_);
  const Decision decision = judge_.decide(endpoint, Clock::now());
  send_at_once(guest.get());
  Link link{.guest = Stream(loop_, guest.release()), .outside = Stream(loop_)};
  if (decision.way == Way::refused || decision.way == Way::inside) {
    events_.add(event_about(endpoint, "tcp", decision));
    co_return link.cut();
  }
  if (upstream == nullptr) upstream = open_outside(endpoint, decision.way);  // it came unannounced
  if (!upstream->done) {
    upstream->settled.expires_at(Clock::time_point::max());
    co_await upstream->settled.async_wait(kAwait);
  }
  if (upstream->error != 0) co_return link.cut();
  if (upstream->socket)
    link.outside.assign(upstream->socket.release());
  else
    link.outside = std::move(upstream->stream);
  if (decision.way == Way::name) {
    Gate gate({.loop = loop_,
               .judge = judge_,
               .events = events_,
               .pipes = pipes_,
               .endpoint = endpoint,
               .decision = decision,
               .program = upstream->program},
              link);
    co_await (pass_guests(gate.pass(), std::move(speaking)) && gate.answer());
  } else {
    co_await (pass_guests(pump(link, link.guest, link.outside, pipes_), std::move(speaking)) &&
              pump(link, link.outside, link.guest, pipes_));
  }
}

Async<void> Streams::serve_published(Fd outside, std::uint16_t port) {
  Fd inside = co_await sockets_.get(AF_INET, SOCK_STREAM);
  if (!inside) co_return;
  const std::optional<Allowance::Share> share = allowance_.take(2, outside.get());
  if (!share) co_return;
  const SocketAddress address = Endpoint{IpAddress::v4(127, 0, 0, 1), port}.to_socket_address();
  Link link{.guest = Stream(loop_, inside.release()), .outside = Stream(loop_, outside.release())};
  const int result = ::connect(link.guest.native_handle(), address.get(), address.size);
  int error = result < 0 ? errno : 0;
  if (error == EINPROGRESS) {
    (void)co_await writable(link.guest);
    error = error_of(link.guest.native_handle());
  }
  if (error != 0) co_return link.cut();
  auto speaking = std::make_unique<Speaking>(crowd_);
  co_await (pass_guests(pump(link, link.guest, link.outside, pipes_), std::move(speaking)) &&
            pump(link, link.outside, link.guest, pipes_));
}

void Streams::note_crowd(const Endpoint& endpoint) {
  Decision decision{Way::refused, {.allowed = false, .rule = {}, .why = kCrowd}, {}};
  NetworkEvent event = event_about(endpoint, "tcp", decision);
  event.would_allow.clear();  // a rule does not help
  events_.add(std::move(event));
}

Async<void> Streams::sweep() {
  while (!listeners_.empty()) {
    sweep_.expires_after(kIdle / 2);
    co_await sweep_.async_wait(kAwait);
    const Clock::time_point old = Clock::now() - kIdle;
    for (auto at = listeners_.begin(); at != listeners_.end();) {
      auto& upstreams = at->second->upstreams;
      // Whoever was to come has not: it was interrupted, or never meant it.
      while (!upstreams.empty() && upstreams.front()->begun < old) upstreams.pop_front();
      if (at->second->used < old && upstreams.empty()) {
        at->second->stream.close();
        at = listeners_.erase(at);
      } else {
        ++at;
      }
    }
  }
  sweeping_ = false;
}

}  // namespace belljar::broker
