// Watchdog: the sum of what a jar uses, where no cgroup counts it.
//
// RLIMIT_DATA is per process and counts neither tmpfs nor shared memory, so the
// supervisor adds up: resident memory of the jar's processes (their share of it,
// once the plain sum is over the limit) and its page tables; memory that stays when
// no process has it mapped, which is its tmpfs, System V segments, semaphores and
// queues, and shared mappings at their full size; and CPU time, of the living, of the
// reaped, and of those that nobody waited for. It looks some times a second, so a
// jar may pass its limit for a moment; RLIMIT_DATA bounds by how much.
//
// Does not count: the kernel's own memory besides (socket buffers, pipes), a shared
// mapping of which only a part is still mapped, the CPU time of a process that lived
// between two looks and that nobody waited for. The plan says so.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
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
  // Processes and threads when cpu_time() was asked for last, init among them.
  std::uint64_t tasks() const { return tasks_; }

 private:
  // Clock ticks of one process, and of the children it has waited for.
  struct Ticks {
    std::uint64_t started = 0;  // tells two processes of one number apart
    std::uint64_t own = 0;
    std::uint64_t reaped = 0;
    std::uint64_t threads = 0;
  };
  using Times = std::map<std::string, Ticks>;

  // What of a process shows its memory in /proc, and that of it.
  struct Memory {
    std::string task;
    std::uint64_t mapped = 0;
    std::uint64_t resident = 0;
  };

  std::vector<std::string> processes() const;
  Memory memory_of(const std::string& pid) const;
  void add_descendants(const std::string& pid, std::vector<std::string>& pids) const;
  std::uint64_t sum_of_memory(std::uint64_t limit);
  std::uint64_t kept_by_the_kernel();
  std::uint64_t page_tables(const std::vector<Memory>& memories) const;
  std::uint64_t shared_mappings(const std::vector<Memory>& memories);
  Ticks ticks_of(const std::string& pid) const;
  std::uint64_t lost_since_last_look(Times& now) const;

  int init_ = 0;
  Fd proc_;
  Fd tmpfs_;
  // Of /proc/sysvipc, which shows the namespace it was opened in.
  Fd segments_;
  Fd queues_;
  Fd semaphores_;

  std::size_t text_left_ = 0;                            // that may be read at this look
  std::map<std::uint64_t, std::uint64_t> shared_sizes_;  // by inode, the largest seen
  std::uint64_t shared_bytes_ = 0;                       // their sum at the last look
  std::uint64_t mapped_then_ = 0;                        // all address space at that time
  int looks_since_ = 0;

  Times times_;
  std::uint64_t lost_ticks_ = 0;  // used by processes that nobody waited for
  std::uint64_t tasks_ = 0;
};

// The child's side: after the view is there, before anything is dropped.
void hand_out_counters(int control_fd, const Child& child) noexcept;

}  // namespace belljar::launcher
