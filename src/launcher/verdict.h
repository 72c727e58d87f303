// What the limits say about a jar that runs, and what its end means.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "launcher/launch.h"

namespace belljar::launcher {

// How long a guest has to go after SIGTERM at its timeout.
inline constexpr std::chrono::milliseconds kGrace{2000};

// Looks some times a second at what no limit of the kernel's own ends: the watchdog's
// sums; and CPU time also where a cgroup counts it, since it has no limit for that.
class LimitWatch {
 public:
  // Does work on another thread.
  using Elsewhere = std::function<void(std::function<void()> work)>;
  // A guest can make the sum of its memory take seconds. Who has other jars to see to has it
  // made elsewhere, and hears of it at the next look.
  explicit LimitWatch(const Limits& limits, Elsewhere elsewhere = {})
      : limits_(limits), elsewhere_(std::move(elsewhere)) {}
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
  // What the jar uses. Where sums are made elsewhere: what is known of it, and if that is not fresh
  // another sum is begun.
  std::uint64_t memory_kb(Jar& jar);
  // One for memory_kb() is under way.
  bool is_measuring() const { return next_exact_ && !next_exact_->done; }
  // What is known is no longer true.
  void forget_memory() { fresh_until_ = {}; }
  // The guest had as many processes and threads as it may, since CPU time was renewed, as
  // far as it was looked at.
  bool procs_were_full() const { return procs_were_full_; }

 private:
  // One sum of the watchdog's.
  struct MemoryLook {
    std::uint64_t bytes = 0;
    std::atomic<bool> done = false;
  };

  std::chrono::microseconds count(Jar& jar);
  std::optional<Reason> look_now(Jar& jar);
  std::optional<std::uint64_t> memory_bytes(Jar& jar, std::uint64_t limit);
  std::shared_ptr<MemoryLook> begin_sum(Jar& jar, std::uint64_t limit);

  Limits limits_;
  Elsewhere elsewhere_;
  std::shared_ptr<MemoryLook> last_memory_;  // the newest that is done
  std::shared_ptr<MemoryLook> next_memory_;  // under way elsewhere
  // The same without a limit, below which a sum may be too high.
  std::shared_ptr<MemoryLook> last_exact_;
  std::shared_ptr<MemoryLook> next_exact_;
  std::chrono::steady_clock::time_point fresh_until_;
  // One thread at a time may ask the watchdog for a sum.
  std::shared_ptr<std::mutex> one_sum_ = std::make_shared<std::mutex>();
  // Not at once: a guest that has just begun has used nothing.
  std::chrono::steady_clock::time_point next_look_ =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
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
