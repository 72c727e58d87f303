// Aside: work on files that takes too long for the event loop, on threads of its own. A
// guest can make a hundred thousand files, and nobody else shall wait for them.
#pragma once

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <memory>
#include <optional>

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
  Async<std::invoke_result_t<Work>> run(Loop& loop, Work work) {
    using Value = std::invoke_result_t<Work>;
    struct State {
      explicit State(Loop& its_loop) : done(its_loop) {}
      Signal done;
      std::optional<Value> value;
    };
    const auto state = std::make_shared<State>(loop);
    begin([&loop, state = state, work = std::move(work)]() mutable {
      Value value = work();
      asio::post(loop, [state = std::move(state), value = std::move(value)]() mutable {
        state->value = std::move(value);
        state->done.raise();
      });
    });
    while (!state->value) co_await state->done.wait();
    co_return std::move(*state->value);
  }

  // Nobody waits for it; it is done when this object has gone.
  template <class Work>
  void begin(Work work) {
    if (!threads_) threads_ = std::make_unique<asio::thread_pool>(kThreads);
    asio::post(*threads_, std::move(work));
  }

  // Waits for everything.
  void finish() {
    if (threads_) threads_->join();
    threads_.reset();
  }

 private:
  static constexpr std::size_t kThreads = 2;
  std::unique_ptr<asio::thread_pool> threads_;  // from when they are needed
};

}  // namespace belljar::session
