#include "layers/seccomp.h"

#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <iterator>

#include "base/child.h"
#include "base/fd.h"
#include "base/syscall.h"
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

constexpr int kProbeTimeoutMs = 2000;

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

// Does a filter that is loaded act? unshare(0) does nothing and always succeeds.
[[noreturn]] void try_filter(const Plan& plan, const Child& child) noexcept {
  apply(plan, child);
  ::_exit(::unshare(0) < 0 && errno == EPERM ? 0 : 1);
}

}  // namespace

std::span<const Compiled> compiled() { return kCompiled; }

Support probe() {
  Result<Pipe> pipe = make_pipe();
  if (!pipe) return {};
  const Plan plan = choose({.arch = kNative});
  pid_t pid = ::fork();
  if (pid < 0) return {};
  if (pid == 0) try_filter(plan, Child(pipe->write.get()));
  pipe->write.reset();

  // Readable or hung up: it failed or ended. A child that does neither in time
  // is killed, and by its status it did not succeed.
  pollfd ended{.fd = pipe->read.get(), .events = POLLIN, .revents = 0};
  if (retry([&] { return ::poll(&ended, 1, kProbeTimeoutMs); }) <= 0) ::kill(pid, SIGKILL);
  int status = 0;
  if (retry([&] { return ::waitpid(pid, &status, 0); }) < 0) return {};
  return {.filters = WIFEXITED(status) && WEXITSTATUS(status) == 0};
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
