// What the limits say about a jar that runs, and what its end means.
#pragma once

#include <chrono>
#include <optional>

#include "launcher/launch.h"

namespace belljar::launcher {

// How long a guest has to go after SIGTERM at its timeout.
inline constexpr std::chrono::milliseconds kGrace{2000};

// Looks at the watchdog's sums some times a second; does nothing for a jar whose
// cgroup counts.
class LimitWatch {
 public:
  static constexpr std::chrono::milliseconds kEvery{50};

  explicit LimitWatch(const Limits& limits) : limits_(limits) {}
  // The limit that was passed, if one was.
  std::optional<Reason> look(Jar& jar);
  std::uint64_t peak_memory_kb() const { return peak_memory_kb_; }

 private:
  Limits limits_;
  // Not at once: a guest that has just begun has used nothing.
  std::chrono::steady_clock::time_point looked_ = std::chrono::steady_clock::now();
  std::uint64_t peak_memory_kb_ = 0;
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
