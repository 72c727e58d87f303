// LoopMeter: how long single handlers hold an event loop. While one runs, nobody else is served and
// no limit of time or memory is looked at, so this figure is what a hostile client would raise.
//
// It counts the loop's own running time: wall time less the time for which the thread was ready and
// had no CPU (schedstat). So a blocking call counts, and a busy machine does not. Where the kernel
// has no schedstat (CONFIG_SCHED_INFO) it is wall time.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string_view>

#include "base/loop.h"

namespace belljar::server {

class LoopMeter {
 public:
  using Time = std::chrono::nanoseconds;
  static constexpr std::array<Time, 5> kBounds = {
      std::chrono::milliseconds(1), std::chrono::milliseconds(5), std::chrono::milliseconds(10),
      std::chrono::milliseconds(50), std::chrono::milliseconds(250)};

  LoopMeter() = default;
  LoopMeter(const LoopMeter&) = delete;
  LoopMeter& operator=(const LoopMeter&) = delete;

  // As Loop::run, on the calling thread.
  void run(Loop& loop);

  // What the present turn is about. The text must outlive the turn.
  void note(std::string_view what) { about_ = what; }
  // Hears of turns of 50 ms and more, and what was noted last in them.
  std::function<void(Time time, std::string_view about)> on_long;

  std::uint64_t turns() const { return turns_; }
  Time longest() const { return longest_; }
  Time sum() const { return sum_; }
  // How many turns took at most kBounds[i].
  const std::array<std::uint64_t, kBounds.size()>& under() const { return under_; }

  // From epoll_wait, see the .cc file.
  void wait_ended();

 private:
  Time waited_for_cpu();
  void end_turn();

  Fd schedstat_;
  Clock::time_point began_;  // the present turn
  Time waited_{};            // for a CPU, as it was told last
  Clock::time_point asked_;  // when that was
  std::string_view about_;
  std::uint64_t turns_ = 0;
  Time longest_{};
  Time sum_{};
  std::array<std::uint64_t, kBounds.size()> under_{};
};

}  // namespace belljar::server
