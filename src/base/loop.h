// The event loop: one thread, coroutines, no exceptions. A Stream is a descriptor that
// coroutines can wait for; they make the system calls themselves.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>

#include "base/fd.h"

namespace belljar {

namespace asio = boost::asio;

using Loop = asio::io_context;
using Stream = asio::posix::stream_descriptor;
using Clock = std::chrono::steady_clock;
template <class T = void>
using Async = asio::awaitable<T>;

inline constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);

// Until it really is. False: the stream was cancelled, or closed.
Async<bool> readable(Stream& stream);
Async<bool> writable(Stream& stream);

void begin(Loop& loop, Async<void> task);

// Something that coroutines wait for until another says that it has changed.
class Signal {
 public:
  explicit Signal(Loop& loop) : timer_(loop, Clock::time_point::max()) {}
  void raise() { timer_.expires_at(Clock::time_point::max()); }  // wakes who waits
  Async<void> wait();
  // For one that waits alone. False: nothing has been raised until then.
  Async<bool> wait_until(Clock::time_point time);

 private:
  asio::steady_timer timer_;
};

}  // namespace belljar
