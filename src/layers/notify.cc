#include "layers/notify.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "base/child.h"
#include "base/fd.h"
#include "base/probe.h"

namespace belljar::notify {
namespace {

// The low half of an argument; an address is asked about by both halves.
constexpr std::uint32_t argument(unsigned n) {
  return static_cast<std::uint32_t>(offsetof(seccomp_data, args) + n * sizeof(std::uint64_t));
}

// Calls of a foreign architecture never come here: the other filter kills them.
constexpr sock_filter kFilter[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_connect, 7, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sendmsg, 6, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sendmmsg, 5, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sendto, 0, 5),
    // send() is sendto without an address: it goes where connect was let go.
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, argument(4)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 2),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, argument(4) + 4),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

// A call that the broker has seen is not broken off by a signal that does not kill: Go
// sends itself one every 10 ms. Linux 5.19 has the flag.
int listen() {
  const sock_fprog program = filter();
  constexpr unsigned long kPatient = SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
  long fd = ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                      SECCOMP_FILTER_FLAG_NEW_LISTENER | kPatient, &program);
  if (fd < 0 && errno == EINVAL)
    fd =
        ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
  return static_cast<int>(fd);
}

}  // namespace

sock_fprog filter() {
  return {.len = static_cast<unsigned short>(std::size(kFilter)),
          .filter = const_cast<sock_filter*>(kFilter)};
}

Support probe() {
  return {.notifications = try_in_child([] {
                             if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) return errno;
                             const Fd listener(listen());
                             return listener ? 0 : errno;
                           }).ok()};
}

std::optional<Plan> resolve(const Policy& policy, const Support& host) {
  if (policy.network != Network::hosts || !host.notifications) return std::nullopt;
  return Plan{};
}

int apply(const Plan&, const Child& child) noexcept {
  child.must(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "prctl(NO_NEW_PRIVS)");
  const int fd = listen();
  child.must(fd >= 0, "seccomp(NEW_LISTENER)");
  return fd;
}

}  // namespace belljar::notify
