#include "layers/syscall_arguments.h"

#include <fcntl.h>
#include <linux/ioprio.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <initializer_list>

// The constants below are the same on x86_64 and aarch64 (asm-generic), so one
// build machine compiles the filters of both.

namespace belljar::seccomp {
namespace {

constexpr Condition has_any_bit(unsigned arg, std::uint32_t bits) {
  return {.test = Test::any_bit, .arg = arg, .mask = bits, .values = {}, .count = 0};
}

constexpr Condition compare(Test test, unsigned arg, std::uint32_t mask,
                            std::initializer_list<std::uint32_t> values) {
  Condition condition{.test = test, .arg = arg, .mask = mask, .values = {}, .count = 0};
  for (std::uint32_t value : values) condition.values[condition.count++] = value;
  return condition;
}

constexpr Condition is_one_of(unsigned arg, std::initializer_list<std::uint32_t> values,
                              std::uint32_t mask = ~0U) {
  return compare(Test::one_of, arg, mask, values);
}

constexpr Condition is_none_of(unsigned arg, std::initializer_list<std::uint32_t> values,
                               std::uint32_t mask = ~0U) {
  return compare(Test::none_of, arg, mask, values);
}

constexpr Condition is_given(unsigned arg) {
  return {.test = Test::given, .arg = arg, .mask = ~0U, .values = {}, .count = 0};
}

constexpr std::uint32_t kNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                      CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

constexpr std::uint32_t kSetId = S_ISUID | S_ISGID;

// The kernel's WILL_CREATE: without one of these it ignores the mode, and the
// register holds whatever was there before. O_DIRECTORY is a part of O_TMPFILE.
constexpr std::uint32_t kCreates = O_CREAT | (O_TMPFILE & ~O_DIRECTORY);

constexpr std::uint32_t kSocketType = 0xf;  // SOCK_TYPE_MASK: the rest is NONBLOCK and CLOEXEC
constexpr std::uint32_t kPersonalityQuery = 0xffffffff;
constexpr std::uint32_t kMultipathTcp = 262;   // IPPROTO_MPTCP: Go's default for listeners
constexpr std::uint32_t kCoreScheduling = 62;  // PR_SCHED_CORE
constexpr std::uint32_t kInit = 1;             // its number and its group's, in the jar

constexpr Refusal kRefusals[] = {
    // Those that run most often come first.
    // A set-id file in a workspace is one that somebody outside can run.
    {"openat", EPERM, {has_any_bit(2, kCreates), has_any_bit(3, kSetId)}},
    // Typing into the caller's terminal (TIOCSTI, TIOCLINUX), taking over the
    // console, line disciplines (kernel modules on demand, a history of bugs), and
    // TIOCEXCL, after which nobody else can open the terminal, long after the guest.
    {"ioctl", EPERM, {is_one_of(1, {TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD, TIOCEXCL})}},
    // A lease keeps who opens the file for writing waiting, up to 45 seconds, and who may only
    // read the file can take one. This is what the kernel says to who may not.
    {"fcntl", EACCES, {is_one_of(1, {F_SETLEASE})}},
    // A child of the parent's is one that the parent does not know of, and would not reap: the
    // jar that it is in could not end.
    {"clone", EPERM, {has_any_bit(0, kNamespaces | CLONE_PARENT)}},

    {"open", EPERM, {has_any_bit(1, kCreates), has_any_bit(2, kSetId)}},
    {"creat", EPERM, {has_any_bit(1, kSetId)}},
    {"chmod", EPERM, {has_any_bit(1, kSetId)}},
    {"fchmod", EPERM, {has_any_bit(1, kSetId)}},
    {"fchmodat", EPERM, {has_any_bit(2, kSetId)}},
    {"fchmodat2", EPERM, {has_any_bit(2, kSetId)}},
    {"mknod", EPERM, {has_any_bit(1, kSetId)}},
    {"mknod", EPERM, {is_one_of(1, {S_IFCHR, S_IFBLK}, S_IFMT)}},
    {"mknodat", EPERM, {has_any_bit(2, kSetId)}},
    {"mknodat", EPERM, {is_one_of(2, {S_IFCHR, S_IFBLK}, S_IFMT)}},

    // Leaves a character device 0:0 behind, which mknod would refuse.
    {"renameat2", EPERM, {has_any_bit(4, RENAME_WHITEOUT)}},

    // Where there is no pid namespace another's limits are a way to end it: a CPU limit
    // of zero. Programs set their own, which are those of process 0.
    {"prlimit64", EPERM, {is_none_of(0, {0})}},

    // At a limit of 1 the kernel runs no program of the host's for a core dump, and at 0 it does.
    // gpg and ssh-agent set 0 for themselves, and end if they cannot: they are told that they have.
    // Who asks for the limit before at the same time would not be told, so that is refused.
    {"setrlimit", 0, {is_one_of(0, {RLIMIT_CORE})}},
    {"prlimit64", EPERM, {is_one_of(1, {RLIMIT_CORE}), is_given(2), is_given(3)}},
    {"prlimit64", 0, {is_one_of(1, {RLIMIT_CORE}), is_given(2)}},

    // The jar ends when init does, and init has the guest's uid. An init that is idle, or bound
    // to a CPU that is kept busy, would end late. Programs set their own scheduling and that of
    // their threads and children. PRIO_USER and IOPRIO_WHO_USER mean everybody in the jar.
    {"sched_setscheduler", EPERM, {is_one_of(0, {kInit})}},
    {"sched_setparam", EPERM, {is_one_of(0, {kInit})}},
    {"sched_setattr", EPERM, {is_one_of(0, {kInit})}},
    {"sched_setaffinity", EPERM, {is_one_of(0, {kInit})}},
    {"setpriority", EPERM, {is_one_of(0, {PRIO_PROCESS, PRIO_PGRP}), is_one_of(1, {kInit})}},
    {"setpriority", EPERM, {is_one_of(0, {PRIO_USER})}},
    {"ioprio_set",
     EPERM,
     {is_one_of(0, {IOPRIO_WHO_PROCESS, IOPRIO_WHO_PGRP}), is_one_of(1, {kInit})}},
    {"ioprio_set", EPERM, {is_one_of(0, {IOPRIO_WHO_USER})}},
    // In init's group, a process that names its own group (0) would name init.
    {"setpgid", EPERM, {is_one_of(1, {kInit})}},
    // Chooses who shares a core with whom, for other processes too. Kernels without it say EINVAL.
    {"prctl", EINVAL, {is_one_of(0, {kCoreScheduling})}},

    // Other execution domains are old code. ADDR_NO_RANDOMIZE serves debuggers,
    // which have no ptrace here, and makes the guest's own bugs easier to use.
    {"personality", EPERM, {is_none_of(0, {0, kPersonalityQuery})}},

    // Only AF_UNIX has pairs that programs use; AF_TIPC has them too.
    {"socketpair", EAFNOSUPPORT, {is_none_of(0, {AF_UNIX})}},
};

// EAFNOSUPPORT and EPROTONOSUPPORT are what a kernel built without the family
// says, so programs go on without it: libaudit's callers, curl, the JVM.
constexpr Refusal kSocketRefusals[] = {
    {"socket", EAFNOSUPPORT, {is_none_of(0, {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK})}},
    // Listing interfaces and routes (Node, Go, glibc); changing them needs a capability.
    {"socket", EPROTONOSUPPORT, {is_one_of(0, {AF_NETLINK}), is_none_of(2, {NETLINK_ROUTE})}},
    // SOCK_RAW, and SOCK_PACKET, which the kernel turns into AF_PACKET.
    {"socket",
     EPERM,
     {is_one_of(0, {AF_INET, AF_INET6}), is_none_of(1, {SOCK_STREAM, SOCK_DGRAM}, kSocketType)}},
    // Naming SCTP, DCCP or SMC would load their modules.
    {"socket",
     EPROTONOSUPPORT,
     {is_one_of(0, {AF_INET, AF_INET6}),
      is_none_of(
          2, {IPPROTO_IP, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMP, IPPROTO_ICMPV6, kMultipathTcp})}},
};

constexpr Refusal kSocketRefusalsWithoutNetwork[] = {
    {"socket", EAFNOSUPPORT, {is_none_of(0, {AF_UNIX})}},
};

// Memory that stays when it is unmapped in part, or let go of by MADV_DONTNEED, and that
// no count but a cgroup's shows then.
constexpr std::uint32_t kMapKind = MAP_TYPE | MAP_ANONYMOUS;
constexpr Refusal kUncountedRefusals[] = {
    {"mmap", EPERM, {is_one_of(3, {MAP_SHARED | MAP_ANONYMOUS}, kMapKind)}},
};

}  // namespace

std::span<const Refusal> uncounted_refusals() { return kUncountedRefusals; }
std::span<const Refusal> refusals() { return kRefusals; }
std::span<const Refusal> socket_refusals() { return kSocketRefusals; }
std::span<const Refusal> socket_refusals_without_network() { return kSocketRefusalsWithoutNetwork; }

}  // namespace belljar::seccomp
