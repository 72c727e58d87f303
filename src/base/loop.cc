#include "base/loop.h"

namespace belljar {

Async<bool> readable(Stream& stream) {
  auto [error] = co_await stream.async_wait(Stream::wait_read, kAwait);
  co_return !error;
}

Async<bool> writable(Stream& stream) {
  auto [error] = co_await stream.async_wait(Stream::wait_write, kAwait);
  co_return !error;
}

void begin(Loop& loop, Async<void> task) { asio::co_spawn(loop, std::move(task), asio::detached); }

Async<void> Signal::wait() { co_await timer_.async_wait(kAwait); }

Async<bool> Signal::wait_until(Clock::time_point time) {
  timer_.expires_at(time);
  auto [error] = co_await timer_.async_wait(kAwait);
  co_return static_cast<bool>(error);
}

}  // namespace belljar
