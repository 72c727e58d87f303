#include "layers/seccomp.h"

#include <linux/ioprio.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <iterator>

#include "base/child.h"
#include "base/probe.h"
#include "layers/seccomp_filters.h"

namespace belljar::seccomp {
namespace {

#if defined(__x86_64__)
constexpr Arch kNative = Arch::x86_64;
#elif defined(__aarch64__)
constexpr Arch kNative = Arch::aarch64;
#else
#error "no seccomp filters for this architecture: add it to seccomp_compile.cc"
#endif

// Calls of other architectures are the large filter's to refuse.
sock_filter no_truncate[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_truncate, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};
constexpr sock_fprog kNoTruncate{.len = std::size(no_truncate), .filter = no_truncate};

constexpr std::uint32_t low(unsigned arg) {
  return static_cast<std::uint32_t>(offsetof(seccomp_data, args) + arg * sizeof(std::uint64_t));
}

// Without a pid namespace init has a number that is known only here. A guest sets no scheduling
// but its own, and may bind others to CPUs (threads are bound by their number), but not init and
// the supervisor: what ends the jar must run.
std::array<sock_filter, 22> own_scheduling_only(pid_t init, pid_t supervisor) {
  constexpr auto load = [](std::size_t offset) -> sock_filter {
    return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
  };
  // How many instructions to skip if it is, and if it is not.
  constexpr auto equals = [](std::uint32_t value, std::uint8_t yes,
                             std::uint8_t no) -> sock_filter {
    return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no);
  };
  return {
      load(offsetof(seccomp_data, nr)),
      equals(SYS_sched_setscheduler, 2, 0),
      equals(SYS_sched_setparam, 1, 0),
      equals(SYS_sched_setattr, 0, 2),
      load(low(0)),
      equals(0, 15, 14),
      equals(SYS_setpriority, 0, 4),
      load(low(0)),
      equals(PRIO_PROCESS, 0, 11),
      load(low(1)),
      equals(0, 10, 9),
      equals(SYS_ioprio_set, 0, 4),
      load(low(0)),
      equals(IOPRIO_WHO_PROCESS, 0, 6),
      load(low(1)),
      equals(0, 5, 4),
      equals(SYS_sched_setaffinity, 0, 4),
      load(low(0)),
      equals(static_cast<std::uint32_t>(init), 1, 0),
      equals(static_cast<std::uint32_t>(supervisor), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
}

void load(const sock_fprog& program, const Child& child) noexcept {
  child.must(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0,
             "seccomp(SET_MODE_FILTER)");
}

Plan choose(const Variant& variant) {
  // Every combination that is asked for is compiled, so the end is never reached.
  const Compiled& found = *std::ranges::find(kCompiled, variant, &Compiled::variant);
  // The kernel only reads it, but its struct predates const.
  return {.filter = {.len = static_cast<unsigned short>(found.program.size()),
                     .filter = const_cast<sock_filter*>(found.program.data())}};
}

}  // namespace

std::span<const Compiled> compiled() { return kCompiled; }

Support probe() {
  const Plan plan = choose({.arch = kNative});
  const Tried tried = try_in_child([&] {
    apply(plan, Child(-1));
    // Does a filter that is loaded act? unshare(0) does nothing and always succeeds.
    return ::unshare(0) < 0 && errno == EPERM ? 0 : ENOSYS;
  });
  return {.filters = tried.ok()};
}

Result<std::optional<Plan>> resolve(const Policy& policy, const Support& host, Extra extra) {
  if (!host.filters) return std::nullopt;
  if (extra.joins) return choose({.arch = kNative, .joins = true});
  Plan plan = choose({.arch = kNative,
                      .list = policy.syscalls,
                      .network = policy.network != Network::none,
                      .memfd = !extra.no_memfd});
  plan.hosts_pids = extra.hosts_pids;
  return plan;
}

void apply(const Plan& plan, const Child& child) noexcept {
  // The kernel refuses a filter without this, since a set-id program could be
  // confused by one.
  child.must(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "prctl(NO_NEW_PRIVS)");
  if (plan.no_truncate) load(kNoTruncate, child);
  if (plan.hosts_pids) {
    auto filter = own_scheduling_only(::getpid(), ::getppid());  // who becomes init, and its parent
    load({.len = filter.size(), .filter = filter.data()}, child);
  }
  load(plan.filter, child);
  child.must(::prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == SECCOMP_MODE_FILTER, "seccomp: not in force");
}

}  // namespace belljar::seccomp
