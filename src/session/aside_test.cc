#include "session/aside.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>

namespace belljar::session {
namespace {

// One who asks for much has them all wait for `open`.
class Flood {
 public:
  Flood(Aside& aside, int count) {
    for (int i = 0; i < count; ++i)
      aside.begin(
          [this] {
            most_ = std::max(most_.load(), ++running_);
            open_.wait();
            --running_;
            ++done_;
          },
          "flood");
  }
  void end() { open_.count_down(); }
  int most() const { return most_; }
  int done() const { return done_; }

 private:
  std::latch open_{1};
  std::atomic<int> running_ = 0, most_ = 0, done_ = 0;
};

TEST(Aside, who_asks_for_much_keeps_nobody_else_waiting) {
  Aside aside;
  Flood flood(aside, 50);
  std::latch others(10);
  for (int i = 0; i < 10; ++i) aside.begin([&] { others.count_down(); }, "other");
  others.wait();  // for ever, if the flood had every thread or came first
  EXPECT_EQ(flood.done(), 0);
  flood.end();
  aside.finish();
  EXPECT_EQ(flood.done(), 50);
  EXPECT_LE(flood.most(), static_cast<int>(Aside::kMostOfOne));
}

TEST(Aside, owners_take_turns) {
  Aside aside;
  std::string order;
  std::latch busy(4), begin(1), done(21), end(1);
  auto hold = [&](std::latch& until) {
    return [&] {
      busy.count_down();
      until.wait();
    };
  };
  // All threads are busy, so that what follows waits; then one of them works, and the order is its.
  for (const char* owner : {"x", "x", "y"}) aside.begin(hold(end), owner);
  aside.begin(hold(begin), "y");
  busy.wait();
  auto note = [&](char which) {
    return [&, which] {
      order.push_back(which);
      done.count_down();
    };
  };
  for (int i = 0; i < 20; ++i) aside.begin(note('a'), "a");
  aside.begin(note('b'), "b");
  begin.count_down();
  done.wait();
  end.count_down();
  aside.finish();
  ASSERT_EQ(order.size(), 21U);
  EXPECT_LT(order.find('b'), 2U) << order;  // not after the twenty that were asked for before it
}

TEST(Aside, all_is_done_when_it_has_finished_and_it_can_begin_anew) {
  std::atomic<int> done = 0;
  Aside aside;
  for (int round = 1; round <= 2; ++round) {
    for (int i = 0; i < 100; ++i) aside.begin([&] { ++done; }, "of " + std::to_string(i % 7));
    aside.finish();
    EXPECT_EQ(done, 100 * round);
  }
}

TEST(Aside, what_it_comes_to_arrives_on_the_loop) {
  Loop loop;
  Aside aside;
  int got = 0;
  auto ask = [](Loop& on, Aside& of, int& into) -> Async<void> {
    auto work = [] { return 42; };
    into = co_await of.run(on, "me", work);
  };
  begin(loop, ask(loop, aside, got));
  auto keep = asio::make_work_guard(loop);
  while (got == 0) loop.run_one();  // NOLINT(bugprone-infinite-loop): ask() sets it
  EXPECT_EQ(got, 42);
}

}  // namespace
}  // namespace belljar::session
