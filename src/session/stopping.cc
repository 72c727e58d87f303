#include "session/stopping.h"

#include <csignal>
#include <cstring>

namespace belljar::session {
namespace {

using std::chrono::milliseconds;

// SIGKILL takes effect at once, unless the kernel is busy on the guest's behalf.
constexpr milliseconds kKillTime{5'000};
// Python forgets an interrupt that comes while it frees something.
constexpr milliseconds kAskAgain{1'000};

Stop reason_to_stop(const Running& running, Clock::time_point deadline) {
  if (running.asked_to_stop) return Stop::asked;
  if (running.jar.out_of_cpu()) return Stop::cpu_limit;
  return Clock::now() >= deadline ? Stop::timeout : Stop::none;
}

}  // namespace

Async<Stopped> await_end(Running running, Clock::time_point deadline, milliseconds grace) {
  Stopped stopped;
  Clock::time_point ask_again = Clock::time_point::max();
  while (!running.over()) {
    co_await running.process.changed.wait_until(std::min(deadline, ask_again));
    if (running.over()) break;
    if (stopped.why == Stop::none) {
      stopped.why = reason_to_stop(running, deadline);
      if (stopped.why == Stop::none) continue;
      deadline = Clock::now() + grace;
      ask_again = Clock::now();
    } else if (Clock::now() >= deadline) {
      stopped.killed = true;
      running.make_stop();
      deadline = Clock::now() + grace;
    }
    if (Clock::now() < ask_again) continue;
    running.jar.signal(running.process, SIGINT);
    running.jar.signal(running.process, SIGCONT);  // a stopped process would not see it
    ask_again = Clock::now() + kAskAgain;
  }
  co_return stopped;
}

Async<void> await_death(AsyncJar& jar, Process& process) {
  const Clock::time_point deadline = Clock::now() + kKillTime;
  while (!process.ended()) {
    co_await process.changed.wait_until(deadline);
    if (!process.ended() && Clock::now() >= deadline) jar.end();
  }
}

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

void tell_output(CallReport& report, const Capture::Taken& output) {
  report.out = output.out.text();
  report.err = output.err.text();
  report.out_cut = output.out.cut();
  report.err_cut = output.err.cut();
}

void tell_stop(CallReport& report, const Stopped& stopped) {
  report.interrupted = stopped.why != Stop::none;
  report.killed = stopped.killed;
  if (stopped.why == Stop::timeout) {
    report.status = CallStatus::timeout;
    report.limits_hit.emplace_back("timeout");
  }
  if (stopped.why == Stop::cpu_limit) {
    report.status = CallStatus::error;
    report.limits_hit.emplace_back("max_cpu_secs");
  }
  if (stopped.killed) report.notes.emplace_back("it did not stop when asked, and was killed");
}

void tell_limit(CallReport& report, const AsyncJar& jar) {
  const std::optional<Reason> limit = jar.ended_by();
  if (!limit) return;
  report.limits_hit.emplace_back(*limit == Reason::cpu_limit ? "max_cpu_secs" : "max_memory_mb");
  report.notes.push_back("everything in the session was ended: " + std::string(name(*limit)));
}

}  // namespace belljar::session
