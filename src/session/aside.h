// Aside: work on files that takes too long for the event loop, on threads of its own. A
// guest can make a hundred thousand files, and nobody else shall wait for them.
//
// Nor for one who asks for much: work has an owner, owners take turns, and none of them has
// all threads at once. What one owner asks for is begun in that order.
#pragma once

#include <boost/asio/post.hpp>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/loop.h"

namespace belljar::session {

class Aside {
 public:
  Aside() = default;
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;
  ~Aside() { finish(); }

  // What `work` returns. It must not touch what the loop's own code uses meanwhile.
  template <class Work>
  Async<std::invoke_result_t<Work>> run(Loop& loop, std::string owner, Work work) {
    using Value = std::invoke_result_t<Work>;
    struct State {
      explicit State(Loop& its_loop) : done(its_loop) {}
      Signal done;
      std::optional<Value> value;
    };
    const auto state = std::make_shared<State>(loop);
    auto job = [&loop, state = state, work = std::move(work)]() mutable {
      Value value = work();
      asio::post(loop, [state = std::move(state), value = std::move(value)]() mutable {
        state->value = std::move(value);
        state->done.raise();
      });
    };
    begin(std::move(job), std::move(owner));
    while (!state->value) co_await state->done.wait();
    co_return std::move(*state->value);
  }

  // Nobody waits for it; it is done when this object has gone.
  void begin(std::move_only_function<void()> work, std::string owner = {});

  // Waits for everything.
  void finish();

  static constexpr std::size_t kThreads = 4;
  static constexpr std::size_t kMostOfOne = 2;  // threads that one owner has at once

 private:
  struct Queue {
    std::deque<std::move_only_function<void()>> waiting;
    std::size_t running = 0;
  };
  using Queues = std::map<std::string, Queue>;
  Queues::iterator next();
  void work();

  std::mutex mutex_;  // of all below but the threads, which are the loop's to start and join
  std::condition_variable news_;
  Queues queues_;            // of those who have any
  std::string last_;         // whose turn it was
  std::size_t waiting_ = 0;  // pieces of work
  std::size_t idle_ = 0;     // threads
  bool finishing_ = false;
  std::vector<std::thread> threads_;  // from when they are needed
};

// Work of one owner that grows with what somebody sent. A little is done at once, since to hand it
// over takes longer; what is more is done beside the loop.
struct Beside {
  static constexpr std::size_t kLittle = std::size_t{64} << 10;  // bytes

  Aside& aside;
  Loop& loop;
  std::string owner;

  template <class Work>
  Async<std::invoke_result_t<Work>> run(std::size_t bytes, Work work) const {
    if (bytes <= kLittle) co_return work();
    co_return co_await aside.run(loop, owner, std::move(work));
  }
};

}  // namespace belljar::session
