#include "base/loop.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <optional>

namespace belljar {
namespace {

// A pipe whose end to be read is on the loop.
struct Waited {
  Waited(Loop& loop, Pipe pipe) : stream(loop, pipe.read.release()), write(std::move(pipe.write)) {}
  Stream stream;
  Fd write;
};

void fill(const Waited& pipe) { ASSERT_EQ(::write(pipe.write.get(), "x", 1), 1); }

struct Scene {
  Loop loop;
  std::optional<Waited> pipes[2];
  std::optional<Waited> later;
  std::optional<bool> later_is_readable;
};

Async<void> wait_for_later(Scene& scene) {
  scene.later_is_readable = co_await readable(scene.later->stream);
}

// The first to be told closes the other one, of which there is news too, and opens a third.
Async<void> wait_for_one(Scene& scene, int mine) {
  const bool told = co_await readable(scene.pipes[mine]->stream);
  if (!told || scene.later) co_return;
  boost::system::error_code ignored;
  (void)scene.pipes[1 - mine]->stream.close(ignored);
  scene.later.emplace(scene.loop, make_pipe().value());
  begin(scene.loop, wait_for_later(scene));
}

TEST(Loop, news_of_a_closed_descriptor_is_not_told_of_the_next) {
  Scene scene;
  for (auto& pipe : scene.pipes) pipe.emplace(scene.loop, make_pipe().value());
  for (int i : {0, 1}) begin(scene.loop, wait_for_one(scene, i));
  scene.loop.poll();
  for (auto& pipe : scene.pipes) fill(*pipe);
  for (int i = 0; i < 100; ++i) scene.loop.poll();
  ASSERT_TRUE(scene.later);
  EXPECT_EQ(scene.later_is_readable, std::nullopt);

  fill(*scene.later);
  scene.loop.run();
  EXPECT_EQ(scene.later_is_readable, true);
}

TEST(Loop, a_stream_that_is_closed_while_somebody_waits_is_not_readable) {
  Scene scene;
  scene.later.emplace(scene.loop, make_pipe().value());
  begin(scene.loop, wait_for_later(scene));
  scene.loop.poll();
  boost::system::error_code ignored;
  (void)scene.later->stream.close(ignored);
  scene.loop.run();
  EXPECT_EQ(scene.later_is_readable, false);
}

TEST(Loop, the_end_of_a_stream_is_readable) {
  Scene scene;
  scene.later.emplace(scene.loop, make_pipe().value());
  begin(scene.loop, wait_for_later(scene));
  scene.later->write.reset();
  scene.loop.run();
  EXPECT_EQ(scene.later_is_readable, true);
}

}  // namespace
}  // namespace belljar
