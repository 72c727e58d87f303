#include "launcher/wait.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <csignal>

#include "base/syscall.h"

namespace belljar {
namespace {

using Clock = std::chrono::steady_clock;
using protocol::Kind;
using std::chrono::microseconds;
using std::chrono::milliseconds;

// How long a guest has to go after SIGTERM at its timeout.
constexpr milliseconds kGrace{2000};
constexpr milliseconds kWatchEvery{50};

// What a person or a service manager sends to make a program do something.
constexpr int kForwarded[] = {SIGINT,  SIGTERM,  SIGHUP,  SIGQUIT, SIGUSR1,
                              SIGUSR2, SIGWINCH, SIGALRM, SIGTSTP, SIGCONT};

class Supervisor {
 public:
  Supervisor(const Plan& plan, const Command& command, Jar jar)
      : plan_(plan),
        command_(command),
        jar_(std::move(jar)),
        began_(Clock::now()),
        gave_terminal_(command.takes_terminal) {}

  Status watch_signals() {
    sigset_t signals = supervised_signals();
    signals_ = Fd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals_) return fail("signalfd", errno);
    return {};
  }

  Result<Outcome> run() {
    if (plan_.policy.limits.timeout) deadline_ = began_ + *plan_.policy.limits.timeout;
    while (!ended_) {
      pollfd fds[2] = {{.fd = jar_.control_fd(), .events = POLLIN, .revents = 0},
                       {.fd = signals_.get(), .events = POLLIN, .revents = 0}};
      if (retry([&] { return ::poll(fds, 2, next_tick()); }) < 0) return fail("poll", errno);
      if (fds[1].revents != 0) TRY(forward_signals());
      if (fds[0].revents != 0) TRY(read_event());
      TRY(check_limits());
    }
    return finish();
  }

 private:
  // Milliseconds until something must be looked at; -1: nothing must.
  int next_tick() const {
    std::optional<milliseconds> wait;
    if (deadline_) {
      auto left = std::chrono::duration_cast<milliseconds>(*deadline_ - Clock::now());
      wait = std::max(left + milliseconds(1), milliseconds(0));
    }
    if (plan_.watchdog) wait = std::min(wait.value_or(kWatchEvery), kWatchEvery);
    return wait ? static_cast<int>(wait->count()) : -1;
  }

  Status read_event() {
    std::optional<Event> event = TRY(jar_.next_event());
    if (!event) {
      ended_ = true;
      return {};
    }
    switch (event->kind) {
      case Kind::exited:
        status_ = static_cast<int>(event->value);
        ended_ = true;
        break;
      case Kind::failed:
        outcome_.reason = Reason::not_started;
        outcome_.exec_error = static_cast<int>(event->value);
        ended_ = true;
        break;
      case Kind::stopped:
        return guest_stopped(static_cast<int>(event->value));
      default:
        break;
    }
    return {};
  }

  // The guest was stopped (Ctrl-Z, or it read from the terminal in the background):
  // take the terminal back and stop too, so that the person's shell sees a stopped
  // job. The SIGCONT that ends this is waiting when we go on.
  Status guest_stopped(int signal) {
    // A running job that is brought to the foreground is not told so.
    const bool wants_terminal = signal == SIGTTIN || signal == SIGTTOU;
    if (wants_terminal && !gave_terminal_ && may_use_terminal()) return resume();
    take_terminal();
    if (command_.has_terminal)
      ::kill(0, SIGSTOP);
    else if (told_to_stop_)  // in a pipeline, say
      ::kill(::getpid(), SIGSTOP);
    told_to_stop_ = false;
    return {};
  }

  // A shell gives a job the terminal before it continues it. Continued in the
  // background, the guest must not have it.
  Status resume() {
    if (!may_use_terminal()) return jar_.signal(kFirst, SIGCONT);
    gave_terminal_ = true;
    return jar_.foreground(kFirst);
  }

  bool may_use_terminal() const {
    return command_.has_terminal && ::tcgetpgrp(STDIN_FILENO) == ::getpgrp();
  }

  // Only what was given: in the background it is the shell's, or another job's.
  void take_terminal() {
    if (gave_terminal_) ::tcsetpgrp(STDIN_FILENO, ::getpgrp());  // SIGTTOU is blocked
    gave_terminal_ = false;
  }

  Status forward_signals() {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
      const int signal = static_cast<int>(info.ssi_signo);
      if (signal == SIGTSTP) told_to_stop_ = true;
      if (signal == SIGCONT)
        TRY(resume());
      else
        TRY(jar_.signal(kFirst, signal));
    }
    return {};
  }

  Status check_limits() {
    if (ended_) return {};
    if (deadline_ && Clock::now() >= *deadline_) {
      if (outcome_.reason == Reason::timeout) {
        ended_ = true;  // it had its grace; the jar's end takes it
        return {};
      }
      outcome_.reason = Reason::timeout;
      deadline_ = Clock::now() + kGrace;
      TRY(jar_.signal(kFirst, SIGTERM));
      return jar_.signal(kFirst, SIGCONT);  // a stopped process would not see it
    }
    if (!jar_.watchdog() || Clock::now() - watched_ < kWatchEvery) return {};
    watched_ = Clock::now();
    const Limits& limits = plan_.policy.limits;
    if (limits.memory_mb) {
      const std::uint64_t limit = *limits.memory_mb << 20;
      const std::uint64_t used = jar_.watchdog()->memory_bytes(limit);
      outcome_.peak_memory_kb = std::max(outcome_.peak_memory_kb, std::min(used, limit) / 1024);
      if (used > limit) over(Reason::out_of_memory);
    }
    if (limits.cpu_secs &&
        jar_.watchdog()->cpu_time() > std::chrono::seconds(*limits.cpu_secs))
      over(Reason::cpu_limit);
    return {};
  }

  void over(Reason reason) {
    outcome_.reason = reason;
    ended_ = true;
  }

  Outcome finish() {
    take_terminal();
    const rusage used = jar_.end();
    auto micros = [](const timeval& t) {
      return std::chrono::seconds(t.tv_sec) + microseconds(t.tv_usec);
    };
    outcome_.wall = std::chrono::duration_cast<microseconds>(Clock::now() - began_);
    outcome_.user_cpu = micros(used.ru_utime);
    outcome_.system_cpu = micros(used.ru_stime);
    outcome_.peak_memory_kb =
        std::max(outcome_.peak_memory_kb, static_cast<std::uint64_t>(used.ru_maxrss));
    if (auto peak = jar_.group().peak_memory_kb()) outcome_.peak_memory_kb = *peak;
    judge();
    outcome_.kept = plan_.kept;
    outcome_.losses = plan_.losses;
    const PhaseClock& clock = jar_.phases();
    for (std::size_t i = 1; i < clock.count; ++i)
      outcome_.phases.emplace_back(clock.names[i], microseconds((clock.at[i] - clock.at[i - 1]) / 1000));
    return std::move(outcome_);
  }

  void judge() {
    // No status: the jar was ended by us, or from outside.
    const int status = status_.value_or(SIGKILL);
    outcome_.by_signal = WIFSIGNALED(status);
    outcome_.code = outcome_.by_signal ? WTERMSIG(status) : WEXITSTATUS(status);
    if (outcome_.reason == Reason::not_started) {
      outcome_.by_signal = false;
      outcome_.code = outcome_.exec_error == ENOENT || outcome_.exec_error == ENOTDIR ? 127 : 126;
    } else if (outcome_.reason == Reason::exited) {
      if (jar_.group().out_of_memory())
        outcome_.reason = Reason::out_of_memory;
      else if (outcome_.by_signal)
        outcome_.reason = outcome_.code == SIGXCPU   ? Reason::cpu_limit
                          : outcome_.code == SIGXFSZ ? Reason::file_size_limit
                                                     : Reason::signaled;
    }
    switch (outcome_.reason) {
      case Reason::timeout: outcome_.limits_hit.emplace_back("timeout"); break;
      case Reason::out_of_memory: outcome_.limits_hit.emplace_back("max_memory_mb"); break;
      case Reason::cpu_limit: outcome_.limits_hit.emplace_back("max_cpu_secs"); break;
      case Reason::file_size_limit: outcome_.limits_hit.emplace_back("max_file_sz_mb"); break;
      default: break;
    }
    if (jar_.group().pids_limit_hit()) outcome_.limits_hit.emplace_back("max_procs");
  }

  static constexpr std::uint32_t kFirst = 1;  // the id of the command

  const Plan& plan_;
  const Command& command_;
  Jar jar_;
  Fd signals_;
  Clock::time_point began_;
  Clock::time_point watched_{};
  std::optional<Clock::time_point> deadline_;
  std::optional<int> status_;
  bool gave_terminal_;         // the guest's group is in the foreground
  bool told_to_stop_ = false;  // by a SIGTSTP to this process
  bool ended_ = false;
  Outcome outcome_;
};

}  // namespace

sigset_t supervised_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (int signal : kForwarded) ::sigaddset(&signals, signal);
  return signals;
}

Result<Outcome> run(const Plan& plan, const Command& command, Supervision supervision) {
  Jar jar = TRY(Jar::start(plan, &command));
  Supervisor supervisor(plan, command, std::move(jar));
  if (supervision.forward_signals) TRY(supervisor.watch_signals());
  return supervisor.run();
}

std::string_view name(Reason reason) {
  switch (reason) {
    case Reason::exited: return "exited";
    case Reason::signaled: return "signaled";
    case Reason::timeout: return "timeout";
    case Reason::out_of_memory: return "out of memory";
    case Reason::cpu_limit: return "cpu limit";
    case Reason::file_size_limit: return "file size limit";
    case Reason::not_started: return "not started";
  }
  return "?";
}

int Outcome::exit_code() const {
  if (reason == Reason::timeout) return 124;
  return by_signal ? 128 + code : code;
}

}  // namespace belljar
