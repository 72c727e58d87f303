#include "launcher/macos/usage.h"

#include <libproc.h>
#include <mach/mach_time.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace belljar::macos {
namespace {

constexpr std::size_t kMaxPids = 4096;

// The calls take bytes, and give a number of pids or of bytes.
std::vector<pid_t> pids_of_group(pid_t group) {
  std::vector<pid_t> pids(kMaxPids);
  const int found =
      ::proc_listpgrppids(group, pids.data(), static_cast<int>(kMaxPids * sizeof(pid_t)));
  pids.resize(static_cast<std::size_t>(std::clamp(found, 0, static_cast<int>(kMaxPids))));
  return pids;
}

}  // namespace

Usage usage_of_group(pid_t group) {
  // Times are in ticks, which are no nanoseconds on Apple's own processors.
  mach_timebase_info_data_t base{};
  ::mach_timebase_info(&base);
  Usage sum;
  for (pid_t pid : pids_of_group(group)) {
    rusage_info_v2 info{};
    // NOLINTNEXTLINE: the call takes this for a pointer to void pointers
    if (::proc_pid_rusage(pid, RUSAGE_INFO_V2, reinterpret_cast<rusage_info_t*>(&info)) != 0)
      continue;  // it has ended meanwhile
    sum.memory += info.ri_phys_footprint;
    const std::uint64_t ticks = info.ri_user_time + info.ri_system_time;
    sum.cpu += std::chrono::nanoseconds(ticks * base.numer / std::max(base.denom, 1U));
  }
  return sum;
}

std::uint64_t processes_of_this_user() {
  const int bytes = ::proc_listpids(PROC_UID_ONLY, ::geteuid(), nullptr, 0);
  return bytes > 0 ? static_cast<std::uint64_t>(bytes) / sizeof(pid_t) : 0;
}

}  // namespace belljar::macos
