// Programs of a session besides its workers: those that run on, and those that are one call.
#include <csignal>

#include "session/session.h"

namespace belljar::session {

namespace {

Async<void> kill_after(std::weak_ptr<Program> program, Loop& loop, Clock::duration time) {
  asio::steady_timer timer(loop, time);
  co_await timer.async_wait(kAwait);
  const std::shared_ptr<Program> still = program.lock();
  if (still != nullptr && still->running()) still->signal(SIGKILL);
}

}  // namespace

// Who does not heed it in time is made to: some shells lose one that comes while they fork.
void Session::interrupt(const std::shared_ptr<Program>& program) {
  program->signal(SIGINT);
  begin(common_->loop, kill_after(program, common_->loop, common_->settings.grace));
}

Async<Result<std::shared_ptr<Program>>> Session::spawn(ProgramCall call) {
  const std::shared_ptr<Session> keep = shared_from_this();
  const Busy busy(*this);
  const Status started = co_await start_jar();
  if (!started) co_return std::unexpected(started.error());
  co_return co_await Program::start(jar_, std::move(call), common_->settings.max_output);
}

Async<Result<ProgramEnd>> Session::run(ProgramCall call,
                                       std::optional<std::chrono::milliseconds> asked) {
  const std::shared_ptr<Session> keep = shared_from_this();
  const Busy busy(*this);
  CallReport about_time;
  const auto time = time_for(asked, common_->settings.shell_timeout, about_time);
  const Clock::time_point began = Clock::now();
  const std::uint64_t interrupts = interrupts_;
  const Status ready = co_await start_jar();
  if (!ready) co_return std::unexpected(ready.error());
  const std::shared_ptr<AsyncJar> jar = jar_;
  const std::size_t most = common_->settings.max_output;
  jar->begin_call();
  Result<std::shared_ptr<Program>> started = co_await Program::start(jar, std::move(call), most);
  ProgramEnd end;
  if (started) {
    const std::shared_ptr<Program>& program = *started;
    (void)program->close_input();  // it has pipes
    programs_.insert(program);
    if (interrupts_ != interrupts) interrupt(program);  // while it was being started
    const bool in_time = co_await program->ended(began + time);
    end.timed_out = !in_time;
    if (!in_time) program->signal(SIGTERM);
    const bool heard = co_await program->ended(Clock::now() + common_->settings.grace);
    if (!heard) program->signal(SIGKILL);
    end.state = co_await program->wait(Clock::now() + common_->settings.grace);
    programs_.erase(program);
  }
  jar->end_call();
  if (!started) co_return std::unexpected(started.error());
  if (ended_) co_return Result<ProgramEnd>(fail("the session was closed"));
  end.interrupted = interrupts_ != interrupts;
  end.notes = std::move(about_time.notes);
  end.time = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began);
  co_return end;
}

}  // namespace belljar::session
