#include "broker/relay.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <boost/asio/post.hpp>

#include "base/syscall.h"

namespace belljar::broker {
namespace {

constexpr std::size_t kPipeSize = 1 << 20;
constexpr std::size_t kIdlePipes = 16;
constexpr std::size_t kCopied = 64 << 10;
// After so much others have their turn.
constexpr std::size_t kTurn = 4 << 20;

void reset_at_close(int fd) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

ssize_t move(int from_fd, int to_fd, std::size_t size) {
  return retry([&] {
    return ::splice(from_fd, nullptr, to_fd, nullptr, size, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
  });
}

}  // namespace

std::optional<Pipes::Lent> Pipes::borrow() {
  if (!idle_.empty()) {
    Lent lent = std::move(idle_.back());
    idle_.pop_back();
    return lent;
  }
  Result<Pipe> pipe = make_pipe();
  if (!pipe) return std::nullopt;
  std::optional<Allowance::Share> share = allowance_.take(2, pipe->write.get());
  if (!share) return std::nullopt;
  // Where the person's pipes are many already it stays small.
  ::fcntl(pipe->write.get(), F_SETPIPE_SZ, kPipeSize);
  return Lent{*std::move(pipe), *std::move(share)};
}

void Pipes::give_back(Lent lent) {
  if (idle_.size() < kIdlePipes) idle_.push_back(std::move(lent));
}

void Link::cut() {
  if (std::exchange(broken, true)) return;
  for (Stream* stream : {&guest, &outside}) {
    reset_at_close(stream->native_handle());
    stream->cancel();
  }
}

namespace {

// Without a pipe. False: `from` has ended, or the link is broken.
Async<bool> copy_some(Link& link, Stream& from, Stream& to) {
  std::vector<std::byte> buffer(kCopied);
  const ssize_t got = retry(
      [&] { return ::recv(from.native_handle(), buffer.data(), buffer.size(), MSG_DONTWAIT); });
  if (got < 0 && errno == EAGAIN) co_return true;
  if (got == 0) ::shutdown(to.native_handle(), SHUT_WR);
  if (got < 0) link.cut();
  if (got <= 0) co_return false;
  const bool sent =
      co_await send_all(link, to, std::span(buffer).first(static_cast<std::size_t>(got)));
  co_return sent;
}

}  // namespace

Async<void> pump(Link& link, Stream& from, Stream& to, Pipes& pipes) {
  std::size_t since_turn = 0;
  while (!link.broken && co_await readable(from)) {
    std::optional<Pipes::Lent> lent = pipes.borrow();
    if (!lent) {
      const bool goes_on = co_await copy_some(link, from, to);
      if (!goes_on) co_return;
      continue;
    }
    Pipe* const pipe = &lent->pipe;
    for (;;) {
      ssize_t got = move(from.native_handle(), pipe->write.get(), kPipeSize);
      if (got == 0) {
        ::shutdown(to.native_handle(), SHUT_WR);
        pipes.give_back(*std::move(lent));
        co_return;
      }
      if (got < 0 && errno != EAGAIN) co_return link.cut();
      if (got < 0) break;
      since_turn += static_cast<std::size_t>(got);
      while (got > 0) {
        const ssize_t sent =
            move(pipe->read.get(), to.native_handle(), static_cast<std::size_t>(got));
        if (sent < 0 && errno == EAGAIN && co_await writable(to)) continue;
        if (sent <= 0) co_return link.cut();
        got -= sent;
      }
      if (since_turn < kTurn) continue;
      since_turn = 0;
      co_await asio::post(kAwait);
    }
    pipes.give_back(*std::move(lent));
  }
  link.cut();
}

Async<bool> send_all(Link& link, Stream& to, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = retry([&] {
      return ::send(to.native_handle(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    });
    if (n < 0 && errno == EAGAIN && co_await writable(to)) continue;
    if (n <= 0) {
      link.cut();
      co_return false;
    }
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  co_return true;
}

}  // namespace belljar::broker
