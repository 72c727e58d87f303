// What the limits say about a jar that runs, and what its end means.
#pragma once

#include <chrono>
#include <optional>

#include "launcher/launch.h"

namespace belljar::launcher {

// How long a guest has to go after SIGTERM at its timeout.
inline constexpr std::chrono::milliseconds kGrace{2000};

// Looks some times a second at what no limit of the kernel's own ends: the watchdog's
// sums; and CPU time also where a cgroup counts it, since it has no limit for that.
class LimitWatch {
 public:
  explicit LimitWatch(const Limits& limits) : limits_(limits) {}
  // How long to wait for the next look; nothing if none is needed.
  std::optional<std::chrono::milliseconds> every(const Jar& jar) const;
  // The limit that was passed, if one was.
  std::optional<Reason> look(Jar& jar);
  // CPU time counts anew from here, or from the last look or renewal, which costs nothing.
  void renew_cpu(Jar& jar);
  void renew_cpu_from_last_look();
  // CPU time at the last look.
  std::chrono::microseconds cpu_seen() const { return cpu_last_; }
  std::uint64_t peak_memory_kb() const { return peak_memory_kb_; }
  // The guest had as many processes and threads as it may, since CPU time was renewed, as
  // far as it was looked at.
  bool procs_were_full() const { return procs_were_full_; }

 private:
  std::chrono::microseconds count(Jar& jar);

  Limits limits_;
  // Not at once: a guest that has just begun has used nothing.
  std::chrono::steady_clock::time_point looked_ = std::chrono::steady_clock::now();
  std::uint64_t peak_memory_kb_ = 0;
  bool cpu_limit_passed_ = false;  // at the last look
  std::chrono::microseconds cpu_before_{};
  std::chrono::microseconds cpu_last_{};
  bool procs_were_full_ = false;
};

// Fills in what ended a command. No status: its jar was ended by us, or from outside.
// `group` is asked only about the end of a whole jar; else null.
void judge(Outcome& outcome, std::optional<int> status, const cgroup::Group* group);

// After that: limits that ended a child of a guest which then ended by itself, as far as
// its exit code tells (a shell says 128 + signal).
void add_felt_limits(Outcome& outcome, const Limits& limits);

// What a whole jar used, and how its launch went.
void add_usage(Outcome& outcome, const rusage& used, const Jar& jar);

// What its broker decided.
void add_network(Outcome& outcome, Jar& jar);

}  // namespace belljar::launcher
