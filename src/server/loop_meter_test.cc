#include "server/loop_meter.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <boost/asio/post.hpp>
#include <thread>

namespace belljar::server {
namespace {

using std::chrono::milliseconds;

milliseconds cpu_time() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return milliseconds(time.tv_sec * 1000 + time.tv_nsec / 1'000'000);
}

void spin(milliseconds time) {
  const milliseconds end = cpu_time() + time;
  while (cpu_time() < end) {
  }
}

void stay_on_first_cpu() {
  cpu_set_t first;
  CPU_ZERO(&first);
  CPU_SET(0, &first);
  ASSERT_EQ(::sched_setaffinity(0, sizeof first, &first), 0);
}

TEST(LoopMeter, a_blocking_call_counts_and_is_told_with_what_it_was) {
  Loop loop;
  LoopMeter meter;
  std::string told;
  meter.on_long = [&](LoopMeter::Time, std::string_view about) { told = about; };
  asio::post(loop, [&] {
    meter.note("a sleeper");
    std::this_thread::sleep_for(milliseconds(60));
  });
  asio::post(loop, [] {});
  meter.run(loop);
  EXPECT_GE(meter.longest(), milliseconds(60));
  EXPECT_EQ(told, "a sleeper");
  EXPECT_EQ(meter.turns(), 2U);
  EXPECT_EQ(meter.under().back(), 2U);
}

TEST(LoopMeter, to_wait_for_something_is_no_turn) {
  Loop loop;
  LoopMeter meter;
  asio::steady_timer timer(loop, milliseconds(80));
  timer.async_wait([](boost::system::error_code) {});
  meter.run(loop);
  EXPECT_EQ(meter.turns(), 1U);
  EXPECT_LT(meter.longest(), milliseconds(40));
}

TEST(LoopMeter, to_wait_for_a_cpu_does_not_count) {
  std::thread([] {
    stay_on_first_cpu();
    std::atomic<bool> over = false;
    std::thread busy([&] {
      stay_on_first_cpu();
      while (!over) spin(milliseconds(1));
    });
    Loop loop;
    LoopMeter meter;
    Clock::duration wall{};
    asio::post(loop, [&] {
      const Clock::time_point began = Clock::now();
      spin(milliseconds(100));
      wall = Clock::now() - began;
    });
    meter.run(loop);
    over = true;
    busy.join();
    EXPECT_GT(wall, milliseconds(150));
    EXPECT_GE(meter.longest(), milliseconds(99));
    EXPECT_LT(meter.longest(), milliseconds(130));
  }).join();
}

}  // namespace
}  // namespace belljar::server
