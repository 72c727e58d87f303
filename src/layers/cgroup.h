// cgroup: the sum of a jar's memory, processes and CPU time, counted by the kernel.
//
// Defends against: many small processes, tmpfs, page cache and memfds that no
// rlimit adds up. Needs cgroup v2 with the memory and pids controllers delegated
// to the caller; the jar is born inside (CLONE_INTO_CGROUP, Linux 5.7), because
// moving a process in costs 4 to 8 ms.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "base/fd.h"
#include "belljar/policy.h"

namespace belljar::cgroup {

struct Support {
  std::string parent;  // a cgroup in which we may make others; empty: none
  std::string why_not;
};

struct Plan {
  std::string parent;
  std::optional<std::uint64_t> memory_bytes;
  std::optional<std::uint64_t> pids;
};

// A cgroup made for one jar and removed with it.
class Group {
 public:
  static Result<Group> make(const Plan& plan);
  Group() = default;
  Group(Group&&) noexcept = default;
  Group& operator=(Group&&) noexcept;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group();

  int fd() const { return dir_.get(); }
  // A process that joins the jar from elsewhere. Nothing to do where there is no group.
  Status adopt(int pid) const;
  void kill() const;           // everything inside, at once
  bool out_of_memory() const;  // the kernel killed the jar for its memory
  bool pids_limit_hit() const;
  std::optional<std::uint64_t> memory_kb() const;
  std::optional<std::uint64_t> peak_memory_kb() const;
  std::chrono::microseconds cpu_time() const;  // of all that ever ran inside

 private:
  std::optional<std::uint64_t> kilobytes(const char* file) const;

  std::string path_;
  Fd dir_;
};

Support probe();
std::optional<Plan> resolve(const Policy& policy, const Support& host);

}  // namespace belljar::cgroup
