// The public API of sessions: the engine on a thread of its own, with calls that block.
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <future>
#include <thread>

#include "session/engine.h"

namespace belljar {

struct Engine::State {
  Loop loop;
  asio::executor_work_guard<Loop::executor_type> guard = asio::make_work_guard(loop);
  std::unique_ptr<session::Engine> engine;
  std::thread thread;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // What `work` returns, from the engine's thread.
  template <class F>
  auto ask(F work) {
    std::promise<decltype(work())> promise;
    auto answer = promise.get_future();
    asio::post(loop, [&] { promise.set_value(work()); });
    return answer.get();
  }

  // What the call that `work` begins comes to.
  template <class T, class F>
  Result<T> call(F work) {
    std::promise<Result<T>> promise;
    auto answer = promise.get_future();
    asio::post(loop, [&] { begin(loop, finish<T>(work(), promise)); });
    return answer.get();
  }

  Async<Status> measure() {
    co_await engine->measure();
    co_return Status();
  }

  template <class T>
  static Async<void> finish(Async<Result<T>> work, std::promise<Result<T>>& promise) {
    Result<T> result = co_await std::move(work);
    promise.set_value(std::move(result));
  }

  ~State() {
    // What waits in a session is answered when that ends; then nothing is left to do.
    asio::post(loop, [this] {
      engine.reset();
      guard.reset();
    });
    thread.join();
  }
};

Engine::Engine(std::unique_ptr<State> state) : state_(std::move(state)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;

Result<Engine> Engine::start(const Policy& policy, const SessionSettings& settings,
                             const Caller& caller) {
  auto state = std::make_unique<State>();
  Result<std::unique_ptr<session::Engine>> engine =
      session::Engine::make(state->loop, policy, caller, settings);
  if (engine) state->engine = std::move(*engine);
  state->thread = std::thread([&loop = state->loop] { loop.run(); });
  if (!engine) return std::unexpected(engine.error());
  return Engine(std::move(state));
}

Result<std::string> Engine::open(const std::string& id, std::optional<Policy> policy) {
  return state_->ask([&] { return state_->engine->open(id, std::move(policy)); });
}

Result<PythonResult> Engine::python(const std::string& session, PythonCall call) {
  return state_->call<PythonResult>(
      [&] { return state_->engine->python(session, std::move(call)); });
}

Result<ShellResult> Engine::shell(const std::string& session, ShellCall call) {
  return state_->call<ShellResult>([&] { return state_->engine->shell(session, std::move(call)); });
}

Status Engine::reset(const std::string& session) {
  return state_->call<void>([&] { return state_->engine->reset(session); });
}

Status Engine::interrupt(const std::string& session) {
  return state_->ask([&] { return state_->engine->interrupt(session); });
}

Status Engine::close(const std::string& session) {
  return state_->ask([&] { return state_->engine->close(session); });
}

std::vector<SessionInfo> Engine::list() {
  (void)state_->call<void>([&] { return state_->measure(); });
  return state_->ask([&] { return state_->engine->list(); });
}

}  // namespace belljar
