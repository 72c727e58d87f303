#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "belljar/belljar.h"
#include "belljar/session.h"

namespace belljar {
namespace {

Engine start(const SessionSettings& settings = {}) {
  Result<Engine> engine = Engine::start(*profile("restricted"), settings);
  if (!engine) throw std::runtime_error(engine.error().message());
  return std::move(*engine);
}

SessionSettings cold() {
  SessionSettings settings;
  settings.preload.clear();
  return settings;
}

PythonCall code(std::string text) {
  return {.code = std::move(text), .timeout = {}, .outputs = {}, .on_output = {}};
}

TEST(Sessions, keep_their_state) {
  Engine engine = start(cold());
  ASSERT_TRUE(engine.python("a", code("x = 41")));
  EXPECT_EQ(engine.python("a", code("x + 1"))->result, "42");
  EXPECT_EQ(engine.python("b", code("'x' in globals()"))->result, "False");
}

TEST(Sessions, have_a_shell_beside_python) {
  Engine engine = start(cold());
  ShellCall call;
  call.commands = {"echo hi > file", "cat file"};
  const Result<ShellResult> shell = engine.shell("a", call);
  ASSERT_TRUE(shell) << shell.error().message();
  EXPECT_EQ(shell->out, "hi\n");
  EXPECT_EQ(engine.python("a", code("open('file').read()"))->result, "'hi\\n'");
}

TEST(Sessions, are_used_from_several_threads) {
  Engine engine = start(cold());
  std::vector<std::thread> threads;
  std::array<std::string, 4> results;
  for (std::size_t i = 0; i < results.size(); ++i)
    threads.emplace_back([&, i] {
      const std::string name = "s" + std::to_string(i % 2);
      for (int n = 0; n < 5; ++n)
        results[i] = engine.python(name, code("6 * 7"))->result.value_or("none");
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& result : results) EXPECT_EQ(result, "42");
  EXPECT_EQ(engine.list().size(), 2U);
}

TEST(Sessions, end_with_the_engine_and_calls_that_wait_fail) {
  std::optional<Engine> engine(start(cold()));
  ASSERT_TRUE(engine->python("a", code("1")));
  std::promise<void> begun;
  PythonCall call = code("print('begun', flush=True)\nimport time\ntime.sleep(1000)");
  call.on_output = [&, told = false](OutputStream, std::string_view) mutable {
    if (!std::exchange(told, true)) begun.set_value();
  };
  std::thread waits([&] {
    const Result<PythonResult> result = engine->python("a", call);
    EXPECT_TRUE(!result || result->status == CallStatus::error);
  });
  begun.get_future().wait();
  (void)engine->close("a");  // the call's end is what is looked at
  waits.join();
  engine.reset();
}

TEST(Sessions, are_refused_without_a_sandbox) {
  Policy policy = *profile("restricted");
  policy.mode = Mode::off;
  EXPECT_FALSE(Engine::start(policy));
}

}  // namespace
}  // namespace belljar
