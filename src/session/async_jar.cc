#include "session/async_jar.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "session/descendants.h"

namespace belljar::session {
namespace {

using protocol::Kind;
using std::chrono::milliseconds;

// How often the limits of a jar are looked at in which nothing runs: there may be hundreds.
constexpr milliseconds kIdleTick{1000};

// Reading what a jar used is a quarter of a small call's time. What a shorter one used is
// charged to nobody, or at the next look to whoever runs then.
constexpr milliseconds kWorthCounting{5};
// A fork takes a few; with five hundred guests at work on two cores it took twenty seconds.
constexpr milliseconds kJoinTime{60'000};
// A guest of the jar can stop a fork that is on its way, and it is looked after so often.
constexpr milliseconds kJoinLook{50};
// A guest can make init talk without end, by stopping what init started. The socket holds
// fewer.
constexpr int kEventsAtOnce = 1000;

// The loop closes what it waits for, and these descriptors are the jar's.
Result<Fd> another(int fd) {
  Fd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!copy) return fail("watch a jar", errno, "raise the limit on open files (ulimit -n)");
  return copy;
}

// What the guest sees is opened for the launch. Its mounts hold it from then on, so device and
// inode stay what they were.
std::shared_ptr<const Plan> launched(Plan plan) {
  for (Place& place : plan.layout.places) place.fd.reset();
  return std::make_shared<const Plan>(std::move(plan));
}

}  // namespace

AsyncJar::AsyncJar(Loop& loop, Asides asides, launcher::Started started)
    : loop_(loop),
      ending_(asides.ending),
      owner_(std::move(asides.owner)),
      plan_(launched(std::move(started.plan))),
      jar_(std::move(started.jar)),
      watch_(
          plan_->policy.limits,
          [&aside = asides.watching](std::function<void()> work) { aside.begin(std::move(work)); }),
      control_(loop),
      pidfd_(loop),
      tick_(loop) {}

Result<std::shared_ptr<AsyncJar>> AsyncJar::make(Loop& loop, Asides asides,
                                                 launcher::Started started) {
  std::shared_ptr<AsyncJar> jar(new AsyncJar(loop, std::move(asides), std::move(started)));
  // A guest can keep init from reading, and nobody may wait for that.
  if (::fcntl(jar->jar_.control_fd(), F_SETFL, O_NONBLOCK) < 0) return fail("watch a jar", errno);
  jar->control_.assign(TRY(another(jar->jar_.control_fd())).release());
  jar->pidfd_.assign(TRY(another(jar->jar_.init_pidfd())).release());
  belljar::begin(loop, hear(jar));
  belljar::begin(loop, watch_end(jar));
  belljar::begin(loop, watch_limits(jar));
  return jar;
}

Result<std::shared_ptr<Process>> AsyncJar::spawn(launcher::Command command) {
  if (ended_) return fail("the jar has ended");
  command.leads = false;
  const Result<std::uint32_t> id = jar_.spawn(command);
  if (!id && id.error().err == EAGAIN) {  // init is kept from reading, and may have read a part
    end();
    return fail(kKeepsFromStarting, 0, kStartsAnew);
  }
  if (!id) return std::unexpected(id.error());
  auto process = std::make_shared<Process>(loop_, *id);
  processes_.emplace(*id, process);
  return process;
}

void AsyncJar::signal(const Process& process, int signal) {
  if (ended_ || process.ended()) return;
  const Status sent =
      process.forked ? jar_.signal_group(process.pid, signal) : jar_.signal(process.id, signal);
  if (!sent) return end();  // init is kept from reading; a signal that is lost ends nothing
  if (auto found = processes_.find(process.id); found != processes_.end())
    ++found->second->signals_under_way;
}

Async<Result<std::shared_ptr<Process>>> AsyncJar::fork(std::shared_ptr<Warm> warm, int control_fd,
                                                       std::array<int, 3> stdio_fds,
                                                       Patience patience) {
  using Made = Result<std::shared_ptr<Process>>;
  const std::shared_ptr<AsyncJar> keep = shared_from_this();
  if (ended_) co_return Made(fail("the jar has ended"));
  Result<Joining> joining = warm->begin_fork(jar_, *plan_, control_fd, stdio_fds);
  if (!joining) co_return std::unexpected(joining.error());
  Result<Fd> watched = another(joining->fd());
  if (!watched) co_return std::unexpected(watched.error());
  const auto news = std::make_shared<Stream>(loop_, watched->release());
  const Clock::time_point end = std::min(patience.until, Clock::now() + kJoinTime);
  Stops stops(end);
  asio::steady_timer look(loop_);
  for (;;) {
    Result<std::optional<Forked>> step = joining->step();
    if (!step) co_return std::unexpected(step.error());
    if (*step) {
      auto process = std::make_shared<Process>(loop_, last_fork_++);
      process->pid = (*step)->pid_inside;
      process->forked = std::move(**step);
      processes_.emplace(process->id, process);
      belljar::begin(loop_, watch_fork(keep, process));
      co_return process;
    }
    look.expires_after(kJoinLook);
    look.async_wait([news](boost::system::error_code cancelled) {
      boost::system::error_code ignored;  // who waits for it is told in any case
      if (!cancelled) (void)news->cancel(ignored);
    });
    const bool waited = co_await readable(*news);
    if (waited) continue;
    if (ended_) co_return Made(fail("the jar has ended"));
    if (patience.given_up()) co_return Made(fail("it was interrupted"));
    if (joining->continue_if_stopped()) stops.see();
    if (stops.too_many()) {
      this->end();
      co_return Made(fail(kKeepsFromStarting, 0, kStartsAnew));
    }
    if (Clock::now() >= end) co_return Made(fail("the warm interpreter does not answer"));
  }
}

// Its end is known by its descriptor, and how it ended from the interpreter.
Async<void> AsyncJar::watch_fork(std::shared_ptr<AsyncJar> self, std::shared_ptr<Process> process) {
  for (int fd : {process->forked->pidfd.get(), process->forked->status_fd.get()}) {
    Result<Fd> watched = another(fd);
    if (!watched) break;
    Stream news(self->loop_, watched->release());
    co_await readable(news);
  }
  if (process->ended()) co_return;
  const Result<std::optional<int>> status = process->forked->ended();
  process->status = status ? status->value_or(SIGKILL) : SIGKILL;
  self->processes_.erase(process->id);
  process->changed.raise();
}

void AsyncJar::kill_descendants(const Process& process, std::uint64_t since) {
  if (!ended_ && !process.ended() && process.pid > 0 && !process.forked)
    session::kill_descendants(jar_.init_pid(), process.pid, since);
}

void AsyncJar::kill_only(const Process& process) {
  if (process.forked) {
    ::syscall(SYS_pidfd_send_signal, process.forked->pidfd.get(), SIGKILL, nullptr, 0);
    return;
  }
  if (!ended_ && !process.ended() && process.pid > 0)
    session::kill_only(jar_.init_pid(), process.pid);
}

void AsyncJar::look_for_stop(Process& process) const {
  if (!process.forked || process.ended()) return;
  if (is_stopped(process.forked->pid)) process.stopped = true;
}

void AsyncJar::continue_stopped(Process& process) {
  if (std::exchange(process.stopped, false)) signal(process, SIGCONT);
}

void AsyncJar::act_on(const launcher::Event& event) {
  auto found = processes_.find(event.id);
  if (event.kind == Kind::group_signaled)  // init knows the number, not the id, of one that joined
    found = std::ranges::find_if(processes_, [&](const auto& entry) {
      return entry.second->forked && entry.second->pid == static_cast<pid_t>(event.id);
    });
  if (found == processes_.end()) return;
  const std::shared_ptr<Process> process = found->second;
  if (event.kind == Kind::started) process->pid = static_cast<pid_t>(event.value);
  if (event.kind == Kind::stopped) process->stopped = true;
  if (event.kind == Kind::signaled || event.kind == Kind::group_signaled)
    --process->signals_under_way;
  if (event.kind == Kind::exited) process->status = static_cast<int>(event.value);
  if (event.kind == Kind::failed) {
    process->exec_error = static_cast<int>(event.value & ~protocol::kNoFolder);
    process->no_folder = (event.value & protocol::kNoFolder) != 0;
  }
  if (process->ended()) processes_.erase(found);
  process->changed.raise();
}

void AsyncJar::take_events() {
  for (int taken = 0; !ended_ && taken < kEventsAtOnce; ++taken) {
    Result<std::optional<launcher::Event>> event = jar_.next_event();
    if (!event) return end_for(std::nullopt);  // init was made to say nonsense
    if (!*event) return;
    act_on(**event);
  }
}

Async<void> AsyncJar::hear(std::shared_ptr<AsyncJar> self) {
  while (!self->ended_) {
    const bool waited = co_await readable(self->control_);
    if (!waited) co_return;
    const bool is_over = self->jar_.has_ended();  // asked first, or its last words are missed
    self->take_events();
    if (is_over) self->end_for(std::nullopt);
  }
}

Async<void> AsyncJar::watch_end(std::shared_ptr<AsyncJar> self) {
  const bool waited = co_await readable(self->pidfd_);
  if (!waited) co_return;
  self->take_events();
  self->end_for(std::nullopt);
}

Async<void> AsyncJar::watch_limits(std::shared_ptr<AsyncJar> self) {
  const std::optional<milliseconds> every = self->watch_.every(self->jar_);
  if (!every) co_return;
  bool works = false;  // as far as the last look tells
  while (!self->ended_) {
    self->tick_.expires_after(self->calls_ > 0 || works ? *every : kIdleTick);
    co_await self->tick_.async_wait(kAwait);  // early, when a call begins
    if (self->ended_) co_return;
    const auto used_before = self->watch_.cpu_seen();
    const std::optional<Reason> passed = self->watch_.look(self->jar_);
    works = self->watch_.cpu_seen() != used_before;
    if (!passed) continue;
    if (*passed == Reason::cpu_limit && self->calls_ > 0) {
      self->out_of_cpu_ = true;
      for (auto& [id, process] : self->processes_) process->changed.raise();
    } else {
      self->end_for(passed);
    }
  }
}

void AsyncJar::begin_call() {
  if (calls_++ > 0 || ended_) return;
  call_began_ = Clock::now();
  watch_.renew_cpu_from_last_look();
  out_of_cpu_ = false;
  pids_limit_hit_ = jar_.group().pids_limit_hit();
  tick_.cancel();
}

void AsyncJar::end_call() {
  if (ended_) return;
  watch_.forget_memory();  // what it used may be free again
  procs_were_full_ =
      watch_.procs_were_full() || (!pids_limit_hit_ && jar_.group().pids_limit_hit());
  if (--calls_ > 0) return;
  if (Clock::now() - call_began_ > kWorthCounting) {
    watch_.renew_cpu(jar_);
    (void)watch_.memory_kb(jar_);  // so that it is known when somebody asks
  }
  procs_were_full_ = procs_were_full_ || watch_.procs_were_full();
  out_of_cpu_ = false;
}

std::uint64_t AsyncJar::memory_kb() { return ended_ ? 0 : watch_.memory_kb(jar_); }

void AsyncJar::end() { end_for(std::nullopt); }

std::function<void()> AsyncJar::wait_for_the_rest() const {
  return [rest = rest_] {
    if (rest.valid()) rest.wait();
  };
}

void AsyncJar::end_for(std::optional<Reason> reason) {
  if (ended_) return;
  ended_ = true;
  ended_by_ = reason;
  procs_were_full_ = watch_.procs_were_full();
  (void)jar_.kill(0);
  if (!ended_by_ && jar_.group().out_of_memory()) ended_by_ = Reason::out_of_memory;
  // Of a guest with millions of mappings the kernel has seconds to clear up, and a broker may have
  // connections to end.
  std::promise<void> gone;
  rest_ = gone.get_future().share();
  auto end = [jar = std::move(jar_), gone = std::move(gone)]() mutable {
    {
      launcher::Jar ending = std::move(jar);
    }  // ends and goes here
    gone.set_value();
  };
  ending_.begin(std::move(end), owner_);
  boost::system::error_code ignored;  // closing cannot fail in a way that matters
  (void)control_.close(ignored);
  (void)pidfd_.close(ignored);
  tick_.cancel();
  for (auto& [id, process] : std::exchange(processes_, {})) {
    if (!process->ended()) process->status = SIGKILL;
    process->changed.raise();
  }
}

}  // namespace belljar::session
