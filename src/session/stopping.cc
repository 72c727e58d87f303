#include "session/stopping.h"

#include "base/commas.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <tuple>

namespace belljar::session {
namespace {

using std::chrono::milliseconds;

// SIGKILL takes effect at once, unless the kernel is busy on the guest's behalf.
constexpr milliseconds kKillTime{5'000};
// Python forgets an interrupt that comes while it frees something.
constexpr milliseconds kAskAgain{1'000};
// From a spawn request to exec; a busy machine takes its time.
constexpr milliseconds kSpawnTime{5'000};
// Between two looks at a process that starts.
constexpr milliseconds kStartLook{50};
// Between two tries of making something stop.
constexpr milliseconds kRetryTime{200};
// Between two looks at a process that init does not know.
constexpr milliseconds kLookTime{250};
// A guest that stops its worker more often than this in one call may leave it stopped.
constexpr int kMaxContinues = 1000;

Stop reason_to_stop(const Running& running, Clock::time_point deadline) {
  if (running.asked_to_stop) return Stop::asked;
  if (running.jar.out_of_cpu()) return Stop::cpu_limit;
  return Clock::now() >= deadline ? Stop::timeout : Stop::none;
}

}  // namespace

Async<Status> await_start(AsyncJar& jar, Process& process) {
  const Clock::time_point deadline = Clock::now() + kSpawnTime;
  while (process.pid == 0 && !process.ended() && Clock::now() < deadline)
    co_await process.changed.wait_until(deadline);
  if (process.pid != 0 || process.ended()) co_return Status();
  jar.end();
  co_return fail(kKeepsFromStarting, 0, kStartsAnew);
}

Async<Status> await_ready(AsyncJar& jar, Process& process, std::function<bool()> over,
                          milliseconds time, Patience patience) {
  const Clock::time_point deadline = Clock::now() + time;
  Stops stops(std::min(deadline, patience.until));
  while (!over() && Clock::now() < deadline) {
    if (patience.given_up()) co_return fail("it was interrupted");
    jar.look_for_stop(process);
    if (process.stopped) stops.see();
    jar.continue_stopped(process);
    if (stops.too_many()) {
      jar.end();
      co_return fail(kKeepsFromStarting, 0, kStartsAnew);
    }
    const Clock::time_point wake = std::min(deadline, Clock::now() + kStartLook);
    co_await process.changed.wait_until(wake);
  }
  co_return Status();
}

Async<Stopped> await_end(Running running, Clock::time_point deadline, milliseconds grace) {
  Stopped stopped;
  int continues = 0;
  Clock::time_point ask_again = Clock::time_point::max();
  while (!running.over()) {
    running.jar.look_for_stop(running.process);
    if (running.process.stopped && continues++ < kMaxContinues)
      running.jar.continue_stopped(running.process);
    Clock::time_point wake = std::min(deadline, ask_again);
    if (running.process.forked) wake = std::min(wake, Clock::now() + kLookTime);
    co_await running.process.changed.wait_until(wake);
    if (running.over()) break;
    if (stopped.why == Stop::none) {
      stopped.why = reason_to_stop(running, deadline);
      if (stopped.why == Stop::none) continue;
      deadline = Clock::now() + grace;
      ask_again = Clock::now();
    } else if (Clock::now() >= deadline) {
      stopped.killed = true;
      running.make_stop();
      deadline = Clock::now() + kRetryTime;
    }
    if (Clock::now() < ask_again) continue;
    running.jar.signal(running.process, SIGINT);
    running.jar.signal(running.process, SIGCONT);  // a stopped process would not see it
    ask_again = Clock::now() + kAskAgain;
  }
  // An interrupt that is still on its way would be the next call's.
  const Clock::time_point settled = Clock::now() + kKillTime;
  while (running.process.signals_under_way > 0 && !running.process.ended() &&
         Clock::now() < settled)
    co_await running.process.changed.wait_until(settled);
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

// To put right what is no UTF-8 takes a while.
Async<void> tell_output(CallReport& report, Capture::Taken output, const Beside& beside) {
  report.out_cut = output.out.cut();
  report.err_cut = output.err.cut();
  const std::uint64_t written = output.out.written() + output.err.written();
  auto put_right = [output = std::move(output)] {
    return std::make_pair(output.out.text(), output.err.text());
  };
  std::tie(report.out, report.err) = co_await beside.run(written, std::move(put_right));
}

void tell_not_begun(CallReport& report) {
  report.status = CallStatus::error;
  report.interrupted = true;
  report.notes.emplace_back("it was interrupted before it had begun");
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
    report.notes.emplace_back("it had used up the CPU time of a call");
  }
  if (stopped.killed) report.notes.emplace_back("it did not stop when asked, and was killed");
}

void tell_limit(CallReport& report, const AsyncJar& jar) {
  const std::optional<Reason> limit = jar.ended_by();
  if (!limit) return;
  report.limits_hit.emplace_back(*limit == Reason::cpu_limit ? "max_cpu_secs" : "max_memory_mb");
  report.notes.push_back("everything in the session was ended: " + std::string(name(*limit)));
}

namespace {

// How programs say that they were refused something.
struct Complaint {
  std::string_view words;
  std::string_view limit;
  std::string_view also = {};  // must be said too: the words alone can mean something else
};
constexpr Complaint kComplaints[] = {
    {"MemoryError", "max_memory_mb"},
    {"Cannot allocate memory", "max_memory_mb"},
    {"can't start new thread", "max_procs"},
    {"Resource temporarily unavailable", "max_procs", "fork"},
    {"Cannot fork", "max_procs"},
    {"File too large", "max_file_sz_mb"},
    {"File size limit exceeded", "max_file_sz_mb"},
};

std::optional<std::uint64_t> amount(std::string_view limit, const Limits& limits) {
  if (limit == "max_memory_mb") return limits.memory_mb;
  if (limit == "max_procs") return limits.procs;
  return limits.file_sz_mb;
}

bool is_named(const CallReport& report, std::string_view limit) {
  return std::ranges::find(report.limits_hit, limit) != report.limits_hit.end();
}

}  // namespace

void tell_felt_limits(CallReport& report, const AsyncJar& jar, std::string_view said) {
  const Limits& limits = jar.plan().policy.limits;
  if (jar.procs_were_full() && limits.procs) {
    report.limits_hit.emplace_back("max_procs");
    report.notes.push_back("it had as many processes and threads as max_procs allows: " +
                           std::to_string(*limits.procs));
  }
  for (const Complaint& complaint : kComplaints) {
    const std::optional<std::uint64_t> most = amount(complaint.limit, limits);
    if (!most || is_named(report, complaint.limit) || said.find(complaint.words) == said.npos ||
        said.find(complaint.also) == said.npos)
      continue;
    report.limits_hit.emplace_back(complaint.limit);
    report.notes.push_back("it failed with \"" + std::string(complaint.words) +
                           "\": " + std::string(complaint.limit) + " is " + std::to_string(*most));
  }
}

namespace {

// How programs say that there is nobody out there: libc, Python, curl, wget, git, Node, Java.
constexpr std::string_view kUnreachable[] = {
    "Network is unreachable",
    "Address family not supported by protocol",  // where there are no sockets at all
    "Temporary failure in name resolution",
    "Name or service not known",
    "No address associated with hostname",
    "Could not resolve host",
    "unable to resolve host",
    "unable to look up",
    "EAI_AGAIN",
    "ENETUNREACH",
    "UnknownHostException",
};

}  // namespace

std::string about_network(const Policy& policy, std::string_view said) {
  if (policy.network == Network::full) return {};
  const auto speaks_of_it = [&](std::string_view words) { return said.find(words) != said.npos; };
  if (std::ranges::none_of(kUnreachable, speaks_of_it)) return {};
  if (policy.network == Network::none)
    return "this session has no network, so trying again will not help (network is none)";
  if (policy.network == Network::loopback)
    return "this session has no network but its own loopback, so trying again will not help "
           "(network is loopback)";
  return "of the network this session reaches only what allow_net names" +
         (policy.hosts.empty() ? ", which is nothing" : ": " + with_commas(policy.hosts));
}

}  // namespace belljar::session
