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

namespace belljar::rlimit {
namespace {

constexpr std::uint64_t kMb = std::uint64_t{1} << 20;

// A guest at its CPU limit gets SIGXCPU, and a second later SIGKILL.
constexpr std::uint64_t kCpuGraceSecs = 1;

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

}  // namespace

Plan resolve(const Policy& policy, bool own_count) {
  Plan plan;
  auto add = [&](__rlimit_resource resource, std::optional<std::uint64_t> soft,
                 std::uint64_t grace = 0) {
    if (!soft) return;
    rlimit64 inherited{};
    ::getrlimit64(resource, &inherited);  // cannot fail: the resource exists
    const std::uint64_t hard = std::min<std::uint64_t>(*soft + grace, inherited.rlim_max);
    plan.limits.push_back({resource, {std::min<std::uint64_t>(*soft, hard), hard}});
  };
  auto megabytes = [](std::optional<std::uint64_t> mb) {
    return mb ? std::optional(*mb * kMb) : mb;
  };
  const Limits& limits = policy.limits;
  add(RLIMIT_DATA, megabytes(limits.memory_mb));
  add(RLIMIT_FSIZE, megabytes(limits.file_sz_mb));
  add(RLIMIT_NOFILE, limits.open_fds);
  if (const auto callers = descriptor_limit_before(); callers && !limits.open_fds) {
    rlimit64 raised{};
    ::getrlimit64(RLIMIT_NOFILE, &raised);  // cannot fail: the resource exists
    plan.limits.push_back({RLIMIT_NOFILE, {*callers, raised.rlim_max}});
  }
  if (!limits.cpu_renews) add(RLIMIT_CPU, limits.cpu_secs, kCpuGraceSecs);
  add(RLIMIT_CORE, 0);
  // The jar's init is one more. Without a count of the jar's own the limit is
  // headroom above what the user runs already.
  if (limits.procs) add(RLIMIT_NPROC, *limits.procs + 1 + (own_count ? 0 : tasks_of_this_user()));
  return plan;
}

void apply(const Plan& plan, const Child& child) noexcept {
  for (const Limit& limit : plan.limits)
    child.must(::setrlimit64(limit.resource, &limit.value) == 0, "rlimit: setrlimit");
}

}  // namespace belljar::rlimit
