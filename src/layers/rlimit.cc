#include "layers/rlimit.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <memory>
#include <string>

#include "base/child.h"
#include "base/descriptor_limit.h"
#include "base/file.h"

namespace belljar::rlimit {
namespace {

constexpr std::uint64_t kMb = std::uint64_t{1} << 20;

// A guest at its CPU limit gets SIGXCPU, and a second later SIGKILL.
constexpr std::uint64_t kCpuGraceSecs = 1;

// The kernel runs no program for core dumps at exactly 1, which is the limit of that program
// itself; at 0 it does. Either is too small for a file.
// https://man7.org/linux/man-pages/man5/core.5.html
constexpr std::uint64_t kNoCore = 1;

// What is counted for a user, and in a user namespace for the jar too: queued signals and POSIX
// timers, and the bytes of POSIX message queues (three queues as mq_open makes them).
constexpr std::uint64_t kSignals = 4096;
constexpr std::uint64_t kQueueBytes = 256 << 10;

// Threads count against RLIMIT_NPROC as processes do.
std::uint64_t tasks_of_this_user() {
  std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), ::closedir);
  std::uint64_t count = 0;
  const uid_t uid = ::geteuid();
  while (proc != nullptr) {
    const dirent* entry = ::readdir(proc.get());
    if (entry == nullptr) break;
    if (std::isdigit(static_cast<unsigned char>(entry->d_name[0])) == 0) continue;
    std::string tasks = std::string("/proc/") + entry->d_name + "/task";
    struct stat st{};
    // The link count of `task` is two more than the number of threads.
    if (::stat(tasks.c_str(), &st) == 0 && st.st_uid == uid) count += st.st_nlink - 2;
  }
  return count;
}

// Above what the user runs already. The jar's init is one more.
std::optional<std::uint64_t> headroom(std::optional<std::uint64_t> procs) {
  if (!procs) return procs;
  return *procs + 1 + tasks_of_this_user();
}

// The kernel counts a jar's processes for its caller too, and a jar that may have as many as the
// caller could use up the limit. What ends it from outside (launcher/ending.h) are two more.
std::optional<std::uint64_t> tasks_of_its_own(std::optional<std::uint64_t> procs) {
  rlimit64 callers{};
  ::getrlimit64(RLIMIT_NPROC, &callers);  // cannot fail: the resource exists
  const std::uint64_t limit = callers.rlim_cur;
  const std::uint64_t most = procs ? *procs + 1 : RLIM64_INFINITY;
  if (::geteuid() == 0 || limit == RLIM64_INFINITY || most <= limit / 2)
    return procs ? std::optional(most) : procs;
  const std::uint64_t others = tasks_of_this_user() + 2;
  return std::min(most, limit - std::min(others, limit));
}

std::uint64_t hard_limit(__rlimit_resource resource) {
  rlimit64 inherited{};
  ::getrlimit64(resource, &inherited);  // cannot fail: the resource exists
  return inherited.rlim_max;
}

}  // namespace

Support probe() {
  const std::string pattern = read_text("/proc/sys/kernel/core_pattern").value_or("");
  if (pattern.starts_with('@')) return {.core_dumps = CoreDumps::service};
  const bool settable = hard_limit(RLIMIT_CORE) >= kNoCore;
  return {.core_dumps =
              pattern.starts_with('|') && !settable ? CoreDumps::program : CoreDumps::nobody};
}

Plan resolve(const Policy& policy, bool own_count) {
  Plan plan;
  auto add = [&](__rlimit_resource resource, std::optional<std::uint64_t> soft,
                 std::uint64_t grace = 0) {
    if (!soft) return;
    const std::uint64_t hard = std::min<std::uint64_t>(*soft + grace, hard_limit(resource));
    plan.limits.push_back({resource, {std::min<std::uint64_t>(*soft, hard), hard}});
  };
  auto megabytes = [](std::optional<std::uint64_t> mb) {
    return mb ? std::optional(*mb * kMb) : mb;
  };
  const Limits& limits = policy.limits;
  add(RLIMIT_DATA, megabytes(limits.memory_mb));
  add(RLIMIT_FSIZE, megabytes(limits.file_sz_mb));
  add(RLIMIT_NOFILE, limits.open_fds);
  if (const auto callers = descriptor_limit_before(); callers && !limits.open_fds)
    plan.limits.push_back({RLIMIT_NOFILE, {*callers, hard_limit(RLIMIT_NOFILE)}});
  if (!limits.cpu_renews) add(RLIMIT_CPU, limits.cpu_secs, kCpuGraceSecs);
  add(RLIMIT_CORE, kNoCore);
  // With these a guest could run before everybody else, its own init among them.
  add(RLIMIT_RTPRIO, 0);
  add(RLIMIT_NICE, 0);
  add(RLIMIT_SIGPENDING, kSignals);
  add(RLIMIT_MSGQUEUE, kQueueBytes);
  add(RLIMIT_NPROC, own_count ? tasks_of_its_own(limits.procs) : headroom(limits.procs));
  return plan;
}

void apply(const Plan& plan, const Child& child) noexcept {
  for (const Limit& limit : plan.limits)
    child.must(::setrlimit64(limit.resource, &limit.value) == 0, "rlimit: setrlimit");
}

}  // namespace belljar::rlimit
