#include "layers/seccomp.h"

#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
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
  return choose({.arch = kNative,
                 .list = policy.syscalls,
                 .network = policy.network != Network::none,
                 .memfd = !extra.no_memfd});
}

void apply(const Plan& plan, const Child& child) noexcept {
  // The kernel refuses a filter without this, since a set-id program could be
  // confused by one.
  child.must(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "prctl(NO_NEW_PRIVS)");
  if (plan.no_truncate)
    child.must(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &kNoTruncate) == 0,
               "seccomp(SET_MODE_FILTER)");
  child.must(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &plan.filter) == 0,
             "seccomp(SET_MODE_FILTER)");
  child.must(::prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == SECCOMP_MODE_FILTER, "seccomp: not in force");
}

}  // namespace belljar::seccomp
