#include "layers/notify.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <span>

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
constexpr sock_filter kNetwork[] = {
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

constexpr std::uint32_t kTypeMask = 0xf;  // the rest of a socket's type are flags

constexpr sock_filter kConnects[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_connect, 8, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 1, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socketpair, 0, 7),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, argument(0)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 0, 5),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, argument(1)),
    BPF_STMT(BPF_ALU | BPF_AND | BPF_K, kTypeMask),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SOCK_STREAM, 2, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SOCK_SEQPACKET, 1, 2),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
};

// A call that the supervisor has seen is not broken off by a signal that does not kill: Go
// sends itself one every 10 ms. Linux 5.19 has the flag.
int listen(const Plan& plan) {
  const sock_fprog program = filter(plan);
  constexpr unsigned long kPatient = SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
  long fd = ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                      SECCOMP_FILTER_FLAG_NEW_LISTENER | kPatient, &program);
  if (fd < 0 && errno == EINVAL)
    fd =
        ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
  return static_cast<int>(fd);
}

// As the supervisor does to its guests: takes a descriptor out of one, and reads its memory.
int look_into_a_child() {
  int word = 0;
  const pid_t child = ::fork();
  if (child < 0) return errno;
  if (child == 0)
    for (;;) ::pause();
  const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  const Fd taken(static_cast<int>(::syscall(SYS_pidfd_getfd, process.get(), 0, 0)));
  int err = taken || errno == EBADF ? 0 : errno;  // it may have none
  const iovec here{&word, sizeof word};
  if (err == 0 && ::process_vm_readv(child, &here, 1, &here, 1, 0) < 0) err = errno;
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  return err;
}

}  // namespace

sock_fprog filter(const Plan& plan) {
  const std::span<const sock_filter> program =
      plan.calls == Calls::network ? std::span<const sock_filter>(kNetwork) : kConnects;
  return {.len = static_cast<unsigned short>(program.size()),
          .filter = const_cast<sock_filter*>(program.data())};
}

Support probe() {
  return {.notifications = try_in_child([] {
                             if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) return errno;
                             const Fd listener(listen({}));
                             return listener ? 0 : errno;
                           }).ok(),
          .looks_inside = try_in_child(look_into_a_child).ok()};
}

std::optional<Plan> resolve(const Policy& policy, const Support& host) {
  if (policy.network != Network::hosts || !host.notifications) return std::nullopt;
  return Plan{.calls = Calls::network};
}

std::optional<Plan> resolve_connects(const Support& host) {
  if (!host.notifications || !host.looks_inside) return std::nullopt;
  return Plan{.calls = Calls::connects};
}

int apply(const Plan& plan, const Child& child) noexcept {
  child.must(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "prctl(NO_NEW_PRIVS)");
  const int fd = listen(plan);
  child.must(fd >= 0, "seccomp(NEW_LISTENER)");
  return fd;
}

}  // namespace belljar::notify
