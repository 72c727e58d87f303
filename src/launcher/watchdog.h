// Watchdog: the sum of what a jar uses, where no cgroup counts it.
//
// RLIMIT_DATA is per process and counts neither tmpfs nor shared memory, so the
// supervisor adds up: resident memory of the jar's processes (their share of it,
// once the plain sum is over the limit), its tmpfs, its System V segments; and
// CPU time, of the living and of the reaped. It looks some times a second, so a
// jar may pass its limit for a moment; RLIMIT_DATA bounds by how much.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"

namespace belljar {
class Child;
}

namespace belljar::launcher {

class Watchdog {
 public:
  // Takes the descriptors that the child handed out.
  // `init`: where the jar sees the host's /proc, its processes are init and what
  // descends from it; else 0, and its own /proc lists them.
  static Result<Watchdog> receive(int control_fd, int init);

  // At least the limit's worth of precision: below `limit` it may be an upper bound.
  std::uint64_t memory_bytes(std::uint64_t limit);
  std::chrono::milliseconds cpu_time();

 private:
  std::vector<std::string> processes() const;
  void add_descendants(const std::string& pid, std::vector<std::string>& pids) const;
  int init_ = 0;
  Fd proc_;
  Fd tmpfs_;
  Fd shared_memory_;  // /proc/sysvipc/shm, which shows the namespace it was opened in
};

// The child's side: after the view is there, before anything is dropped.
void hand_out_counters(int control_fd, const Child& child) noexcept;

}  // namespace belljar::launcher
