#include "broker/loop.h"

namespace belljar::broker {

Task<bool> readable(Stream& stream) {
  auto [error] = co_await stream.async_wait(Stream::wait_read, kAwait);
  co_return !error;
}

Task<bool> writable(Stream& stream) {
  auto [error] = co_await stream.async_wait(Stream::wait_write, kAwait);
  co_return !error;
}

void begin(Loop& loop, Task<void> task) { asio::co_spawn(loop, std::move(task), asio::detached); }

Task<void> Signal::wait() { co_await timer_.async_wait(kAwait); }

}  // namespace belljar::broker
