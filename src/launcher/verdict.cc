#include "launcher/verdict.h"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <utility>

namespace belljar::launcher {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

// Between two looks, however long they take.
constexpr milliseconds kLongestRest{1000};
// Hundreds of jars may be asked again and again for what they use.
constexpr milliseconds kFresh{250};

const char* limit_behind(Reason reason) {
  switch (reason) {
    case Reason::timeout:
      return "timeout";
    case Reason::out_of_memory:
      return "max_memory_mb";
    case Reason::cpu_limit:
      return "max_cpu_secs";
    case Reason::file_size_limit:
      return "max_file_sz_mb";
    default:
      return nullptr;
  }
}

microseconds cpu_time(Jar& jar) {
  return jar.watchdog() ? jar.watchdog()->cpu_time() : jar.group().cpu_time();
}

}  // namespace

std::optional<milliseconds> LimitWatch::every(const Jar& jar) const {
  if (jar.has_watchdog()) return milliseconds(50);
  if (jar.group().fd() >= 0 && limits_.cpu_secs) return milliseconds(250);
  return std::nullopt;
}

// CPU time, and tasks by the way.
microseconds LimitWatch::count(Jar& jar) {
  cpu_last_ = cpu_time(jar);
  // Init is one more than the guest may have.
  if (limits_.procs && jar.watchdog() && jar.watchdog()->tasks() > *limits_.procs)
    procs_were_full_ = true;
  return cpu_last_;
}

std::optional<Reason> LimitWatch::look(Jar& jar) {
  const std::optional<milliseconds> wait = every(jar);
  const Clock::time_point began = Clock::now();
  if (!wait || began < next_look_) return std::nullopt;
  const std::optional<Reason> passed = look_now(jar);
  // A guest can make it long, and who looks has other things to do.
  const Clock::duration rest = std::min<Clock::duration>((Clock::now() - began) * 10, kLongestRest);
  next_look_ = Clock::now() + std::max<Clock::duration>(*wait, rest);
  return passed;
}

// Nothing: it is not known yet.
std::optional<std::uint64_t> LimitWatch::memory_bytes(Jar& jar, std::uint64_t limit) {
  if (!elsewhere_) return jar.watchdog()->memory_bytes(limit);
  std::optional<std::uint64_t> bytes;
  if (next_memory_ && next_memory_->done) {
    last_memory_ = std::move(next_memory_);
    bytes = last_memory_->bytes;
  }
  if (!next_memory_) next_memory_ = begin_sum(jar, limit);
  return bytes;
}

std::shared_ptr<LimitWatch::MemoryLook> LimitWatch::begin_sum(Jar& jar, std::uint64_t limit) {
  auto look = std::make_shared<MemoryLook>();
  elsewhere_([look, watchdog = jar.watchdog(), limit, one_sum = one_sum_] {
    const std::lock_guard lock(*one_sum);
    look->bytes = watchdog->memory_bytes(limit);
    look->done = true;
  });
  return look;
}

std::uint64_t LimitWatch::memory_kb(Jar& jar) {
  if (!jar.has_watchdog()) return jar.group().memory_kb().value_or(0);
  if (!elsewhere_) return jar.watchdog()->memory_bytes(0) / 1024;
  if (next_exact_ && next_exact_->done) last_exact_ = std::move(next_exact_);
  if (!next_exact_ && Clock::now() >= fresh_until_) {
    next_exact_ = begin_sum(jar, 0);
    fresh_until_ = Clock::now() + kFresh;
  }
  const MemoryLook* known = last_exact_ ? last_exact_.get() : last_memory_.get();
  return known != nullptr ? known->bytes / 1024 : 0;
}

std::optional<Reason> LimitWatch::look_now(Jar& jar) {
  if (jar.has_watchdog() && limits_.memory_mb) {
    const std::uint64_t limit = *limits_.memory_mb << 20;
    const std::uint64_t used = memory_bytes(jar, limit).value_or(0);
    peak_memory_kb_ = std::max(peak_memory_kb_, std::min(used, limit) / 1024);
    if (used > limit) return Reason::out_of_memory;
  }
  if (!limits_.cpu_secs) return std::nullopt;
  const microseconds used = count(jar) - cpu_before_;
  // Twice, because a process that ends while the watchdog adds up may be counted with
  // who waited for it as well.
  const bool before =
      std::exchange(cpu_limit_passed_, used > std::chrono::seconds(*limits_.cpu_secs));
  return before && cpu_limit_passed_ ? std::optional(Reason::cpu_limit) : std::nullopt;
}

void LimitWatch::renew_cpu(Jar& jar) {
  procs_were_full_ = false;
  if (limits_.cpu_secs && every(jar)) count(jar);
  cpu_before_ = cpu_last_;
  cpu_limit_passed_ = false;
}

void LimitWatch::renew_cpu_from_last_look() {
  procs_were_full_ = false;
  cpu_before_ = cpu_last_;
  cpu_limit_passed_ = false;
}

void judge(Outcome& outcome, std::optional<int> known_status, const cgroup::Group* group) {
  const int status = known_status.value_or(SIGKILL);
  outcome.by_signal = WIFSIGNALED(status);
  outcome.code = outcome.by_signal ? WTERMSIG(status) : WEXITSTATUS(status);
  if (outcome.reason == Reason::not_started) {
    outcome.by_signal = false;
    outcome.code = outcome.exec_error == ENOENT || outcome.exec_error == ENOTDIR ? 127 : 126;
  } else if (outcome.reason == Reason::exited) {
    if (group != nullptr && group->out_of_memory())
      outcome.reason = Reason::out_of_memory;
    else if (outcome.by_signal)
      outcome.reason = outcome.code == SIGXCPU   ? Reason::cpu_limit
                       : outcome.code == SIGXFSZ ? Reason::file_size_limit
                                                 : Reason::signaled;
  }
  if (const char* limit = limit_behind(outcome.reason)) outcome.limits_hit.emplace_back(limit);
  if (group != nullptr && group->pids_limit_hit()) outcome.limits_hit.emplace_back("max_procs");
}

void add_felt_limits(Outcome& outcome, const Limits& limits) {
  if (outcome.reason != Reason::exited) return;
  if (outcome.code == 128 + SIGXFSZ && limits.file_sz_mb)
    outcome.limits_hit.emplace_back("max_file_sz_mb");
  if (outcome.code == 128 + SIGXCPU && limits.cpu_secs)
    outcome.limits_hit.emplace_back("max_cpu_secs");
}

void add_usage(Outcome& outcome, const rusage& used, const Jar& jar) {
  auto micros = [](const timeval& t) {
    return std::chrono::seconds(t.tv_sec) + microseconds(t.tv_usec);
  };
  outcome.user_cpu = micros(used.ru_utime);
  outcome.system_cpu = micros(used.ru_stime);
  outcome.peak_memory_kb =
      std::max(outcome.peak_memory_kb, static_cast<std::uint64_t>(used.ru_maxrss));
  if (auto peak = jar.group().peak_memory_kb()) outcome.peak_memory_kb = *peak;
  const PhaseClock& clock = jar.phases();
  for (std::size_t i = 1; i < clock.count; ++i)
    outcome.phases.emplace_back(clock.names[i],
                                microseconds((clock.at[i] - clock.at[i - 1]) / 1000));
}

void add_network(Outcome& outcome, Jar& jar) {
  if (jar.broker() == nullptr) return;
  outcome.network = jar.broker()->events();
  outcome.network_dropped = jar.broker()->dropped_events();
}

}  // namespace belljar::launcher
