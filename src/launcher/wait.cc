#include "launcher/wait.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "base/descriptor_limit.h"
#include "base/file.h"
#include "base/syscall.h"
#include "launcher/verdict.h"

namespace belljar::launcher {
namespace {

using Clock = std::chrono::steady_clock;
using protocol::Kind;
using std::chrono::milliseconds;

// What a person or a service manager sends to make a program do something.
constexpr int kForwarded[] = {SIGINT,  SIGTERM,  SIGHUP,  SIGQUIT, SIGUSR1,
                              SIGUSR2, SIGWINCH, SIGALRM, SIGTSTP, SIGCONT};

// Without a pid namespace a guest that may signal init can outlive it. What does becomes
// our child, and ends with this object.
class Orphans {
 public:
  Orphans() = default;
  Orphans(const Orphans&) = delete;
  Orphans& operator=(const Orphans&) = delete;
  ~Orphans() {
    if (ours_) end();
  }
  void take() { ours_ = ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0; }

 private:
  // Whose parent has just ended comes to us only then, so until there is none.
  static void end() {
    for (;;) {
      const std::string children = read_text("/proc/thread-self/children").value_or("");
      if (children.empty()) return;
      for (const char* at = children.c_str(); *at != '\0';) {
        char* rest = nullptr;
        const auto pid = static_cast<pid_t>(std::strtol(at, &rest, 10));
        if (rest == at) break;
        if (pid > 0) ::kill(pid, SIGKILL);
        at = rest;
      }
      retry([] { return ::waitpid(-1, nullptr, __WALL); });
    }
  }

  bool ours_ = false;
};

class Supervisor {
 public:
  Supervisor(const Plan& plan, const Command& command, Jar jar)
      : plan_(plan),
        command_(command),
        jar_(std::move(jar)),
        watch_(plan.policy.limits),
        began_(Clock::now()),
        gave_terminal_(command.has_terminal) {}

  Status be_the_program() {
    sigset_t signals = supervised_signals();
    signals_ = Fd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals_) return fail("signalfd", errno);
    if (!plan_.pid_namespace) orphans_.take();
    return {};
  }

  Result<Outcome> run() {
    if (plan_.policy.limits.timeout) deadline_ = began_ + *plan_.policy.limits.timeout;
    while (!ended_) {
      pollfd fds[3] = {{.fd = jar_.control_fd(), .events = POLLIN, .revents = 0},
                       {.fd = signals_.get(), .events = POLLIN, .revents = 0},
                       {.fd = jar_.init_pidfd(), .events = POLLIN, .revents = 0}};
      if (retry([&] { return ::poll(fds, 3, next_tick()); }) < 0) return fail("poll", errno);
      if (fds[1].revents != 0) TRY(forward_signals());
      TRY(read_events());
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
    if (auto every = watch_.every(jar_)) wait = std::min(wait.value_or(*every), *every);
    return wait ? static_cast<int>(wait->count()) : -1;
  }

  Status read_events() {
    const bool was_the_last = jar_.has_ended();
    while (!ended_) {
      std::optional<Event> event = TRY(jar_.next_event());
      if (!event) break;
      act_on(*event);
    }
    ended_ = ended_ || was_the_last;
    return {};
  }

  void act_on(const Event& event) {
    switch (event.kind) {
      case Kind::exited:
        status_ = static_cast<int>(event.value);
        ended_ = true;
        break;
      case Kind::failed:
        outcome_.reason = Reason::not_started;
        outcome_.exec_error = static_cast<int>(event.value & ~protocol::kNoFolder);
        ended_ = true;
        break;
      case Kind::stopped:
        guest_stopped(static_cast<int>(event.value));
        break;
      default:
        break;
    }
  }

  // The guest was stopped. If by Ctrl-Z, or because it read from the terminal in the
  // background: take the terminal back and stop too, so that the person's shell sees a
  // stopped job. Anything else is the guest's own affair, and its time runs on.
  void guest_stopped(int signal) {
    // A running job that is brought to the foreground is not told so.
    const bool wants_terminal = signal == SIGTTIN || signal == SIGTTOU;
    if (wants_terminal && !gave_terminal_ && may_use_terminal()) return resume();
    take_terminal();
    stopped_ = true;
    const bool by_terminal = command_.has_terminal && (wants_terminal || signal == SIGTSTP);
    if (!by_terminal && !told_to_stop_) return;
    told_to_stop_ = false;
    // Where there is no shell to continue us Ctrl-Z means nothing, here as elsewhere.
    if (!stop() && !wants_terminal) resume();
  }

  // As Ctrl-Z would: the whole group, if the terminal is ours to share, and only if
  // somebody can continue it (a SIGSTOP would stop an orphaned group for ever). Whether
  // it did; the SIGCONT that ended it is waiting then.
  bool stop() {
    // While we stop nobody watches the limits, so nothing in the jar may go on.
    (void)jar_.signal_all(SIGSTOP);                           // as for tell_guest
    ::kill(command_.has_terminal ? 0 : ::getpid(), SIGTSTP);  // else: in a pipeline, say
    sigset_t stop_signal;
    ::sigemptyset(&stop_signal);
    ::sigaddset(&stop_signal, SIGTSTP);
    ::sigprocmask(SIG_UNBLOCK, &stop_signal, nullptr);
    ::sigprocmask(SIG_BLOCK, &stop_signal, nullptr);
    sigset_t pending;
    ::sigpending(&pending);
    return ::sigismember(&pending, SIGCONT) == 1;
  }

  // A shell gives a job the terminal before it continues it. Continued in the
  // background, the guest must not have it.
  void resume() {
    stopped_ = false;
    const bool give = may_use_terminal();
    gave_terminal_ = gave_terminal_ || give;
    (void)jar_.resume(kFirst, give);  // as for tell_guest
  }

  bool may_use_terminal() const {
    return command_.has_terminal && ::tcgetpgrp(STDIN_FILENO) == ::getpgrp();
  }

  // Only what was given: in the background it is the shell's, or another job's.
  void take_terminal() {
    if (gave_terminal_) ::tcsetpgrp(STDIN_FILENO, ::getpgrp());  // SIGTTOU is blocked
    gave_terminal_ = false;
  }

  // That init cannot be reached means that it has ended, which we read next.
  void tell_guest(int signal) { (void)jar_.signal(kFirst, signal); }

  Status forward_signals() {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
      const int signal = static_cast<int>(info.ssi_signo);
      if (signal == SIGCONT) {
        resume();
      } else if (signal == SIGTSTP && stopped_) {
        if (!stop()) resume();  // the guest will not tell us a second time
      } else {
        told_to_stop_ = told_to_stop_ || signal == SIGTSTP;
        tell_guest(signal);
        if (stopped_ && signal != SIGTSTP && signal != SIGWINCH) resume();  // to see it
      }
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
      tell_guest(SIGTERM);
      tell_guest(SIGCONT);  // a stopped process would not see it
      return {};
    }
    if (std::optional<Reason> passed = watch_.look(jar_)) {
      outcome_.reason = *passed;
      ended_ = true;
    }
    return {};
  }

  Outcome finish() {
    take_terminal();
    const rusage used = jar_.end();
    outcome_.wall = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - began_);
    outcome_.peak_memory_kb = watch_.peak_memory_kb();
    add_usage(outcome_, used, jar_);
    judge(outcome_, status_, &jar_.group());
    add_felt_limits(outcome_, plan_.policy.limits);
    outcome_.kept = plan_.kept;
    outcome_.losses = plan_.losses;
    add_network(outcome_, jar_);
    return std::move(outcome_);
  }

  static constexpr std::uint32_t kFirst = 1;  // the id of the command

  const Plan& plan_;
  const Command& command_;
  Orphans orphans_;  // before the jar, whose end makes them
  Jar jar_;
  LimitWatch watch_;
  Fd signals_;
  Clock::time_point began_;
  std::optional<Clock::time_point> deadline_;
  std::optional<int> status_;
  bool gave_terminal_;         // the guest's group is in the foreground
  bool told_to_stop_ = false;  // by a SIGTSTP to this process
  bool stopped_ = false;       // the guest is
  bool ended_ = false;
  Outcome outcome_;
};

Result<Outcome> supervise(const Plan& plan, const Command& command, Jar jar,
                          const Supervision& supervision) {
  Supervisor supervisor(plan, command, std::move(jar));
  // A connection through the broker takes two descriptors of this process.
  if (plan.has_broker() && supervision.forward_signals) raise_descriptor_limit();
  if (supervision.forward_signals) TRY(supervisor.be_the_program());
  return supervisor.run();
}

}  // namespace

sigset_t supervised_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (int signal : kForwarded) ::sigaddset(&signals, signal);
  return signals;
}

Result<Outcome> run(const Policy& policy, const Caller& caller, const Command& command,
                    const Supervision& supervision, const AboutToRun& about_to_run) {
  Host host = assume_host();
  Started started =
      TRY(start(policy, caller, host, &command, about_to_run, supervision.on_network));
  return supervise(started.plan, command, std::move(started.jar), supervision);
}

}  // namespace belljar::launcher
