#include "base/loop.h"

#include <poll.h>

#include "base/syscall.h"

namespace belljar {
namespace {

// Asio keeps what it knows of a closed descriptor for the next one, news that it has not told
// yet among it. So a wait can end by what was meant for another descriptor, which ended jars that
// lived: what it says is asked again.
bool is_ready(Stream& stream, short events) {
  pollfd ready{.fd = stream.native_handle(), .events = events, .revents = 0};
  return retry([&] { return ::poll(&ready, 1, 0); }) > 0;
}

}  // namespace

Async<bool> readable(Stream& stream) {
  for (;;) {
    auto [error] = co_await stream.async_wait(Stream::wait_read, kAwait);
    if (error) co_return false;
    if (is_ready(stream, POLLIN)) co_return true;
  }
}

Async<bool> writable(Stream& stream) {
  for (;;) {
    auto [error] = co_await stream.async_wait(Stream::wait_write, kAwait);
    if (error) co_return false;
    if (is_ready(stream, POLLOUT)) co_return true;
  }
}

void begin(Loop& loop, Async<void> task) { asio::co_spawn(loop, std::move(task), asio::detached); }

Async<void> Signal::wait() { co_await timer_.async_wait(kAwait); }

Async<bool> Signal::wait_until(Clock::time_point time) {
  timer_.expires_at(time);
  auto [error] = co_await timer_.async_wait(kAwait);
  co_return static_cast<bool>(error);
}

}  // namespace belljar
