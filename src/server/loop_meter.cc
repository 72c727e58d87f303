#include "server/loop_meter.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cstdio>

#include "base/syscall.h"

namespace belljar::server {
namespace {

// Shorter turns are counted by wall time. To read schedstat takes about a microsecond.
constexpr std::chrono::milliseconds kWorthAsking{1};
constexpr std::chrono::milliseconds kLong{50};

// Asio says nothing of when its wait has ended. The linker gives us its calls of epoll_wait
// (--wrap), and they have to find the meter of their thread.
thread_local LoopMeter* meter_of_thread = nullptr;

}  // namespace

LoopMeter::Time LoopMeter::waited_for_cpu() const {
  std::array<char, 64> text{};
  const ssize_t size =
      retry([&] { return ::pread(schedstat_.get(), text.data(), text.size() - 1, 0); });
  unsigned long long running = 0, waiting = 0;
  if (size <= 0 || std::sscanf(text.data(), "%llu %llu", &running, &waiting) != 2) return {};
  return Time(waiting);
}

void LoopMeter::wait_ended(bool may_have_slept) {
  began_ = Clock::now();
  if (may_have_slept) waited_ = waited_for_cpu();
}

void LoopMeter::end_turn() {
  const Clock::time_point now = Clock::now();
  Time time = now - began_;
  if (time >= kWorthAsking) {
    const Time waited = waited_for_cpu();
    time -= std::min(time, waited - waited_);
    waited_ = waited;
  }
  began_ = now;
  ++turns_;
  sum_ += time;
  longest_ = std::max(longest_, time);
  for (std::size_t i = 0; i < kBounds.size(); ++i)
    if (time <= kBounds[i]) ++under_[i];
  if (time >= kLong && on_long) on_long(time, about_);
  about_ = {};
}

void LoopMeter::run(Loop& loop) {
  schedstat_ = Fd(::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC));  // or there is none
  meter_of_thread = this;
  wait_ended(true);
  while (loop.run_one() != 0) end_turn();
  meter_of_thread = nullptr;
}

}  // namespace belljar::server

// NOLINTBEGIN(bugprone-reserved-identifier): the linker wants these names
extern "C" int __real_epoll_wait(int epoll_fd, epoll_event* events, int most, int timeout);
extern "C" int __wrap_epoll_wait(int epoll_fd, epoll_event* events, int most, int timeout);

extern "C" [[gnu::used]] int __wrap_epoll_wait(int epoll_fd, epoll_event* events, int most,
                                               int timeout) {
  const int count = __real_epoll_wait(epoll_fd, events, most, timeout);
  const int error = errno;
  if (belljar::server::LoopMeter* meter = belljar::server::meter_of_thread)
    meter->wait_ended(timeout != 0);
  errno = error;
  return count;
}
// NOLINTEND(bugprone-reserved-identifier)
