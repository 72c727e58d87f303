#include "server/loop_meter.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cstdio>

#include "base/syscall.h"

namespace belljar::server {
namespace {

// Shorter turns are counted by wall time.
constexpr std::chrono::milliseconds kWorthAsking{1};
// To read schedstat takes microseconds, so it is not asked at every turn. What the thread has
// waited since is taken for a wait of the present turn: it may seem so much shorter than it was.
constexpr std::chrono::milliseconds kStale{5};
constexpr std::chrono::milliseconds kLong{50};

// Asio says nothing of when its wait has ended. The linker gives us its calls of epoll_wait
// (--wrap), and they have to find the meter of their thread.
thread_local LoopMeter* meter_of_thread = nullptr;

}  // namespace

LoopMeter::Time LoopMeter::waited_for_cpu() {
  asked_ = Clock::now();
  std::array<char, 64> text{};
  const ssize_t size =
      retry([&] { return ::pread(schedstat_.get(), text.data(), text.size() - 1, 0); });
  unsigned long long running = 0, waiting = 0;
  if (size <= 0 || std::sscanf(text.data(), "%llu %llu", &running, &waiting) != 2) return {};
  return Time(waiting);
}

void LoopMeter::wait_ended() {
  began_ = Clock::now();
  if (began_ - asked_ > kStale) waited_ = waited_for_cpu();
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
  wait_ended();
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
  if (belljar::server::LoopMeter* meter = belljar::server::meter_of_thread) meter->wait_ended();
  errno = error;
  return count;
}
// NOLINTEND(bugprone-reserved-identifier)
