// The compiled filters, evaluated instruction by instruction for both
// architectures: every denied call and argument is refused in every variant, and
// its neighbour is not.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/ioprio.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <map>
#include <memory>
#include <ostream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "layers/seccomp_variant.h"
#include "layers/syscall_arguments.h"
#include "layers/syscall_groups.h"
#include "support/bpf.h"

namespace belljar::seccomp {

// GoogleTest would print bytes. It looks in the type's own namespace, for this name.
// NOLINTNEXTLINE
static void PrintTo(const Compiled& filter, std::ostream* out) { *out << name(filter.variant); }

namespace {

using Arguments = std::array<std::uint64_t, 6>;
using Values = std::initializer_list<std::uint64_t>;  // arguments to try

constexpr std::uint32_t kAllow = SECCOMP_RET_ALLOW;
constexpr std::uint32_t kKill = SECCOMP_RET_KILL_PROCESS;
constexpr int kNewestCall = 456;

constexpr std::uint32_t refused(int err) {
  return SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(err);
}

std::uint32_t audit_arch(Arch arch) {
  return arch == Arch::x86_64 ? AUDIT_ARCH_X86_64 : AUDIT_ARCH_AARCH64;
}

// Negative where the architecture does not have the call.
int number(Arch arch, const char* call) {
  return seccomp_syscall_resolve_name_arch(audit_arch(arch), call);
}

seccomp_data call_of(std::uint32_t arch, int nr, const Arguments& args = {}) {
  seccomp_data data{.nr = nr, .arch = arch, .instruction_pointer = 0, .args = {}};
  std::ranges::copy(args, data.args);
  return data;
}

std::string verdict(const Compiled& filter, const seccomp_data& call) {
  auto verdict = bpf::evaluate(filter.program, call);
  return verdict ? bpf::describe(verdict->action) : "no verdict";
}

// The names of all groups, for lookups.
std::set<std::string> names(std::span<const Group> groups) {
  std::set<std::string> out;
  for (const Group& group : groups) out.insert(group.calls.begin(), group.calls.end());
  return out;
}

class EveryFilter : public testing::TestWithParam<Compiled> {
 protected:
  const Variant& variant() const { return GetParam().variant; }

  void expect(const char* call, const Arguments& args, std::uint32_t action) const {
    int nr = number(variant().arch, call);
    if (nr < 0) return;
    EXPECT_EQ(verdict(GetParam(), call_of(audit_arch(variant().arch), nr, args)),
              bpf::describe(action))
        << call << std::hex << "(0x" << args[0] << ", 0x" << args[1] << ", 0x" << args[2] << ", 0x"
        << args[3] << ")";
  }

  // Once as it is and once with dirt in the upper halves, which the kernel ignores.
  void expect_low_halves(const char* call, Arguments args, std::uint32_t action) const {
    expect(call, args, action);
    for (std::uint64_t& arg : args) arg |= 0xdead'beef'0000'0000;
    expect(call, args, action);
  }
};

INSTANTIATE_TEST_SUITE_P(Seccomp, EveryFilter,
                         testing::ValuesIn(compiled().begin(), compiled().end()),
                         [](const auto& param) {
                           std::string out = name(param.param.variant);
                           std::replace(out.begin(), out.end(), '-', '_');
                           return out;
                         });

// ---- the tables ------------------------------------------------------------

TEST(SyscallGroups, name_each_call_once) {
  std::map<std::string, int> count;
  for (auto groups : {denied_groups(), absent_groups(), allowed_groups()})
    for (const Group& group : groups)
      for (const char* call : group.calls) ++count[call];
  for (const auto& [call, times] : count) EXPECT_EQ(times, 1) << call;
}

TEST(SyscallGroups, deny_what_the_seed_and_the_attacks_name) {
  const std::set<std::string> denied = names(denied_groups());
  for (const char* call : {"ptrace",
                           "mount",
                           "umount2",
                           "pivot_root",
                           "chroot",
                           "unshare",
                           "setns",
                           "keyctl",
                           "add_key",
                           "request_key",
                           "bpf",
                           "perf_event_open",
                           "kexec_load",
                           "init_module",
                           "finit_module",
                           "delete_module",
                           "reboot",
                           "swapon",
                           "swapoff",
                           "clock_settime",
                           "settimeofday",
                           "setdomainname",
                           "sethostname",
                           "acct",
                           "quotactl",
                           "io_uring_setup",
                           "ioperm",
                           "iopl",
                           "nfsservctl",
                           "io_uring_enter",
                           "io_uring_register",
                           "process_vm_readv",
                           "process_vm_writev",
                           "pidfd_getfd",
                           "kcmp",
                           "userfaultfd",
                           "open_by_handle_at",
                           "open_tree",
                           "move_mount",
                           "fsopen",
                           "fsconfig",
                           "fsmount",
                           "fspick",
                           "mount_setattr",
                           "fanotify_init",
                           "quotactl_fd",
                           "syslog",
                           "lookup_dcookie",
                           "clock_adjtime",
                           "adjtimex",
                           "kexec_file_load",
                           "modify_ldt",
                           "memfd_secret",
                           "vhangup",
                           "uselib",
                           "sysfs",
                           "_sysctl",
                           "ustat"})
    EXPECT_TRUE(denied.contains(call)) << call;
}

TEST(SyscallArguments, are_only_of_allowed_calls) {
  const std::set<std::string> allowed = names(allowed_groups());
  for (auto table :
       {refusals(), socket_refusals(), socket_refusals_without_network(), uncounted_refusals()})
    for (const Refusal& refusal : table)
      EXPECT_TRUE(allowed.contains(refusal.call)) << refusal.call;
}

// ---- every call ------------------------------------------------------------

// What the tables say of a call with arguments that nobody refuses.
std::uint32_t expected(const Variant& variant, const std::string& call) {
  static const std::set<std::string> denied = names(denied_groups());
  static const std::set<std::string> absent = names(absent_groups());
  static const std::set<std::string> allowed = names(allowed_groups());
  if (call == "setns" && variant.joins) return kAllow;
  if (denied.contains(call)) return refused(EPERM);
  if (absent.contains(call)) return refused(ENOSYS);
  if (call == "memfd_create" && !variant.memfd) return refused(ENOSYS);
  if (variant.list == Syscalls::deny_list || allowed.contains(call)) return kAllow;
  return refused(ENOSYS);
}

TEST_P(EveryFilter, decides_every_call_as_the_tables_say) {
  int seen = 0;
  for (int nr = 0; nr <= kNewestCall; ++nr) {
    std::unique_ptr<char, decltype(&std::free)> call(
        seccomp_syscall_resolve_num_arch(audit_arch(variant().arch), nr), &std::free);
    if (!call) continue;
    ++seen;
    bool family = std::string_view(call.get()).starts_with("socket");  // AF_UNSPEC is refused
    expect(call.get(), {family ? AF_UNIX : 0U}, expected(variant(), call.get()));
  }
  EXPECT_GT(seen, 300);
}

TEST_P(EveryFilter, refuses_denied_calls_whatever_the_arguments) {
  for (const Group& group : denied_groups())
    for (const char* call : group.calls)
      if (!variant().joins || std::string_view(call) != "setns")
        for (std::uint64_t fill : Values{0ULL, 1ULL, ~0ULL})
          expect(call, {fill, fill, fill, fill, fill, fill}, refused(EPERM));
}

// The kernel then caches the answer and runs no filter.
TEST_P(EveryFilter, looks_at_arguments_only_where_one_can_be_refused) {
  std::set<int> guarded;
  for (auto table : {refusals(), socket_refusals()})
    for (const Refusal& refusal : table) guarded.insert(number(variant().arch, refusal.call));
  if (!variant().memfd)
    for (const Refusal& refusal : uncounted_refusals())
      guarded.insert(number(variant().arch, refusal.call));
  for (int nr = 0; nr <= kNewestCall; ++nr) {
    auto verdict = bpf::evaluate(GetParam().program, call_of(audit_arch(variant().arch), nr));
    EXPECT_EQ(verdict && verdict->read_arguments, guarded.contains(nr)) << nr;
  }
}

// ---- the prologue ----------------------------------------------------------

TEST_P(EveryFilter, kills_another_architecture) {
  int getpid = number(variant().arch, "getpid");
  std::set<std::uint32_t> others = {AUDIT_ARCH_I386,    AUDIT_ARCH_ARM,     AUDIT_ARCH_X86_64,
                                    AUDIT_ARCH_AARCH64, AUDIT_ARCH_RISCV64, 0};
  others.erase(audit_arch(variant().arch));
  for (std::uint32_t other : others)
    EXPECT_EQ(verdict(GetParam(), call_of(other, getpid)), "kill process") << other;
  expect("getpid", {}, kAllow);
}

TEST_P(EveryFilter, kills_x32_where_it_exists) {
  const std::uint32_t action = variant().arch == Arch::x86_64 ? kKill : refused(ENOSYS);
  for (int nr : {0x40000000, 0x40000000 + 39, 0x40000000 + 512, 0x7fffffff})
    EXPECT_EQ(verdict(GetParam(), call_of(audit_arch(variant().arch), nr)), bpf::describe(action));
}

TEST_P(EveryFilter, has_no_calls_newer_than_its_tables) {
  for (int nr : {kNewestCall + 1, 463, 470, 1000, 0x3fffffff, -1})
    EXPECT_EQ(verdict(GetParam(), call_of(audit_arch(variant().arch), nr)), "ENOSYS") << nr;
  expect("futex_requeue", {}, kAllow);  // 456
}

// ---- arguments -------------------------------------------------------------

TEST_P(EveryFilter, refuses_new_namespaces_and_siblings_by_clone) {
  for (std::uint64_t flag : Values{CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
                                   CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET, CLONE_PARENT}) {
    expect_low_halves("clone", {flag}, refused(EPERM));
    expect_low_halves("clone", {flag | CLONE_VM | CLONE_VFORK | SIGCHLD}, refused(EPERM));
  }
  constexpr std::uint64_t kThread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
                                    CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS |
                                    CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
  expect_low_halves("clone", {kThread}, kAllow);
  expect_low_halves("clone", {SIGCHLD}, kAllow);
}

// The control for the next: why libseccomp is not given the arguments. Should
// this fail, libseccomp has learned to keep the refusal.
TEST(Libseccomp, loses_a_refused_argument_beside_an_allow) {
  scmp_filter_ctx context = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
  ASSERT_EQ(seccomp_rule_add(context, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 0), 0);
  const scmp_arg_cmp injects{
      .arg = 1, .op = SCMP_CMP_MASKED_EQ, .datum_a = 0xffffffff, .datum_b = TIOCSTI};
  ASSERT_EQ(seccomp_rule_add_array(context, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl), 1, &injects),
            0);
  int fd = ::memfd_create("bpf", MFD_CLOEXEC);
  ASSERT_EQ(seccomp_export_bpf(context, fd), 0);
  std::vector<sock_filter> program(1024);
  ssize_t bytes = ::pread(fd, program.data(), program.size() * sizeof(sock_filter), 0);
  program.resize(static_cast<std::size_t>(bytes) / sizeof(sock_filter));
  ::close(fd);
  seccomp_release(context);

  auto verdict =
      bpf::evaluate(program, call_of(seccomp_arch_native(), SCMP_SYS(ioctl), {0, TIOCSTI}));
  EXPECT_TRUE(verdict && verdict->action == kAllow);
}

TEST_P(EveryFilter, refuses_terminal_injection_and_allows_other_ioctls) {
  for (std::uint64_t request : Values{TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD, TIOCEXCL})
    expect_low_halves("ioctl", {0, request}, refused(EPERM));
  for (std::uint64_t request : Values{TCGETS, TIOCGWINSZ, TIOCSPGRP, TIOCSCTTY, FIONREAD, FIOCLEX,
                                      TIOCSTI - 1, TIOCSTI + 1, TIOCSTI + 0x10000})
    expect_low_halves("ioctl", {0, request}, kAllow);
}

struct ModeCall {
  const char* call;
  std::size_t mode;  // which argument
};

TEST_P(EveryFilter, refuses_set_id_bits) {
  for (auto [call, mode] : {ModeCall{"chmod", 1},
                            {"fchmod", 1},
                            {"fchmodat", 2},
                            {"fchmodat2", 2},
                            {"creat", 1},
                            {"mknod", 1},
                            {"mknodat", 2}}) {
    Arguments args{};
    for (std::uint64_t bits :
         Values{S_ISUID, S_ISGID, S_ISUID | S_ISGID, S_ISUID | 0755, S_ISGID | 01777}) {
      args[mode] = bits;
      expect_low_halves(call, args, refused(EPERM));
    }
    for (std::uint64_t bits : Values{0, 0755, 01777, 0777}) {
      args[mode] = bits;
      expect_low_halves(call, args, kAllow);
    }
  }
}

TEST_P(EveryFilter, refuses_set_id_bits_of_open_only_when_it_creates) {
  constexpr std::uint64_t kTmpfileBit = 020000000;
  for (std::uint64_t mode : Values{S_ISUID | 0755, S_ISGID | 0755, 07777}) {
    for (std::uint64_t flags :
         Values{O_CREAT, O_CREAT | O_WRONLY | O_EXCL, O_TMPFILE | O_RDWR, kTmpfileBit}) {
      expect_low_halves("open", {0, flags, mode}, refused(EPERM));
      expect_low_halves("openat", {0, 0, flags, mode}, refused(EPERM));
    }
    // Not creating: the mode is whatever was in the register.
    for (std::uint64_t flags :
         Values{O_RDONLY, O_RDWR | O_CLOEXEC, O_DIRECTORY | O_NOFOLLOW | O_PATH}) {
      expect_low_halves("open", {0, flags, mode}, kAllow);
      expect_low_halves("openat", {0, 0, flags, mode}, kAllow);
    }
  }
  expect_low_halves("openat", {0, 0, O_CREAT | O_WRONLY, 0644}, kAllow);
  expect_low_halves("openat", {0, 0, O_TMPFILE | O_RDWR, 0600}, kAllow);
}

TEST_P(EveryFilter, refuses_device_nodes) {
  for (std::uint64_t type : Values{S_IFCHR, S_IFBLK}) {
    expect_low_halves("mknod", {0, type | 0666}, refused(EPERM));
    expect_low_halves("mknodat", {0, 0, type | 0666}, refused(EPERM));
  }
  for (std::uint64_t type : Values{S_IFIFO, S_IFREG, S_IFSOCK}) {
    expect_low_halves("mknod", {0, type | 0666}, kAllow);
    expect_low_halves("mknodat", {0, 0, type | 0666}, kAllow);
  }
}

TEST_P(EveryFilter, refuses_other_personalities) {
  for (std::uint64_t persona : Values{READ_IMPLIES_EXEC, MMAP_PAGE_ZERO, ADDR_NO_RANDOMIZE,
                                      ADDR_COMPAT_LAYOUT, PER_LINUX32, PER_SVR4})
    expect_low_halves("personality", {persona}, refused(EPERM));
  expect_low_halves("personality", {0xfffffffe}, refused(EPERM));
  expect_low_halves("personality", {PER_LINUX}, kAllow);
  expect_low_halves("personality", {0xffffffff}, kAllow);
}

TEST_P(EveryFilter, refuses_families_nobody_needs) {
  for (std::uint64_t family = 0; family < 64; ++family) {
    if (family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK)
      continue;
    expect_low_halves("socket", {family, SOCK_DGRAM}, refused(EAFNOSUPPORT));
    expect_low_halves("socketpair", {family, SOCK_DGRAM}, refused(EAFNOSUPPORT));
  }
  for (std::uint64_t type : Values{SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET}) {
    expect_low_halves("socket", {AF_UNIX, type | SOCK_CLOEXEC}, kAllow);
    expect_low_halves("socketpair", {AF_UNIX, type | SOCK_NONBLOCK}, kAllow);
  }
}

TEST_P(EveryFilter, allows_routing_netlink_and_no_other) {
  std::uint32_t route = variant().network ? kAllow : refused(EAFNOSUPPORT);
  std::uint32_t other = refused(variant().network ? EPROTONOSUPPORT : EAFNOSUPPORT);
  expect_low_halves("socket", {AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE}, route);
  for (std::uint64_t protocol : Values{NETLINK_SOCK_DIAG, NETLINK_NETFILTER, NETLINK_AUDIT,
                                       NETLINK_KOBJECT_UEVENT, NETLINK_GENERIC, NETLINK_CRYPTO})
    expect_low_halves("socket", {AF_NETLINK, SOCK_RAW, protocol}, other);
}

TEST_P(EveryFilter, allows_internet_sockets_with_a_network_only) {
  std::uint32_t allowed = variant().network ? kAllow : refused(EAFNOSUPPORT);
  for (std::uint64_t family : Values{AF_INET, AF_INET6}) {
    for (std::uint64_t protocol : Values{0, 6, 262})
      expect_low_halves("socket", {family, SOCK_STREAM | SOCK_CLOEXEC, protocol}, allowed);
    for (std::uint64_t protocol : Values{0, 17, 1, 58})
      expect_low_halves("socket", {family, SOCK_DGRAM | SOCK_NONBLOCK, protocol}, allowed);
  }
}

TEST_P(EveryFilter, refuses_raw_sockets_and_rare_protocols) {
  for (std::uint64_t family : Values{AF_INET, AF_INET6}) {
    std::uint32_t type_refused = refused(variant().network ? EPERM : EAFNOSUPPORT);
    for (std::uint64_t type :
         Values{SOCK_RAW, SOCK_PACKET, SOCK_SEQPACKET, SOCK_DCCP, SOCK_RAW | SOCK_CLOEXEC})
      expect_low_halves("socket", {family, type}, type_refused);
    std::uint32_t protocol_refused = refused(variant().network ? EPROTONOSUPPORT : EAFNOSUPPORT);
    for (std::uint64_t protocol :
         Values{IPPROTO_SCTP, IPPROTO_DCCP, IPPROTO_UDPLITE, 256 /* SMC */})
      expect_low_halves("socket", {family, SOCK_STREAM, protocol}, protocol_refused);
  }
}

TEST_P(EveryFilter, refuses_whiteouts_and_allows_other_renames) {
  for (std::uint64_t flags : Values{RENAME_WHITEOUT, RENAME_WHITEOUT | RENAME_NOREPLACE})
    expect_low_halves("renameat2", {0, 0, 0, 0, flags}, refused(EPERM));
  for (std::uint64_t flags : Values{0, RENAME_NOREPLACE, RENAME_EXCHANGE})
    expect_low_halves("renameat2", {0, 0, 0, 0, flags}, kAllow);
}

TEST_P(EveryFilter, refuses_the_limits_of_another_process) {
  expect_low_halves("prlimit64", {0, RLIMIT_CPU}, kAllow);
  for (std::uint64_t pid : Values{1, 2, 4194304})
    expect_low_halves("prlimit64", {pid, RLIMIT_CPU}, refused(EPERM));
}

// All 64 bits of a pointer count: one whose low half is zero is one.
TEST_P(EveryFilter, changes_of_the_limit_on_core_dumps_succeed_and_do_nothing) {
  constexpr std::uint64_t kHigh = 0x7000'0000'0000;
  const std::uint32_t nothing_done = SECCOMP_RET_ERRNO;
  expect_low_halves("setrlimit", {RLIMIT_CORE, 0x1000}, nothing_done);
  expect_low_halves("setrlimit", {RLIMIT_CPU, 0x1000}, kAllow);
  for (std::uint64_t given : Values{0x1000, kHigh, kHigh | 0x1000}) {
    expect("prlimit64", {0, RLIMIT_CORE, given, 0}, nothing_done);
    expect("prlimit64", {0, RLIMIT_CORE, given, given}, refused(EPERM));
    expect("prlimit64", {0, RLIMIT_CORE, 0, given}, kAllow);
    expect("prlimit64", {0, RLIMIT_NOFILE, given, given}, kAllow);
  }
  expect("prlimit64", {1, RLIMIT_CORE, 0x1000, 0}, refused(EPERM));
}

TEST_P(EveryFilter, refuses_to_change_how_init_is_scheduled) {
  for (const char* call :
       {"sched_setscheduler", "sched_setparam", "sched_setattr", "sched_setaffinity"}) {
    expect_low_halves(call, {1}, refused(EPERM));
    for (std::uint64_t pid : Values{0, 2, 10, 101, 4194304}) expect_low_halves(call, {pid}, kAllow);
  }
  struct Kinds {
    const char* call;
    std::uint64_t process, group, user;
  };
  for (auto [call, process, group, user] :
       {Kinds{"setpriority", PRIO_PROCESS, PRIO_PGRP, PRIO_USER},
        {"ioprio_set", IOPRIO_WHO_PROCESS, IOPRIO_WHO_PGRP, IOPRIO_WHO_USER}}) {
    for (std::uint64_t kind : {process, group}) {
      expect_low_halves(call, {kind, 1}, refused(EPERM));
      for (std::uint64_t who : Values{0, 2, 4194304}) expect_low_halves(call, {kind, who}, kAllow);
    }
    for (std::uint64_t who : Values{0, 1, 1000})
      expect_low_halves(call, {user, who}, refused(EPERM));
  }
  expect_low_halves("setpgid", {0, 1}, refused(EPERM));
  for (std::uint64_t group : Values{0, 2}) expect_low_halves("setpgid", {0, group}, kAllow);
  expect_low_halves("prctl", {62 /* PR_SCHED_CORE */, 1, 1}, refused(EINVAL));
  expect_low_halves("prctl", {PR_SET_NAME}, kAllow);
}

TEST_P(EveryFilter, refuses_leases_and_no_other_locks) {
  expect_low_halves("fcntl", {3, F_SETLEASE, F_RDLCK}, refused(EACCES));
  for (std::uint64_t command : Values{F_DUPFD_CLOEXEC, F_GETFL, F_SETLK, F_OFD_SETLKW, F_GETLEASE,
                                      F_SETPIPE_SZ, F_ADD_SEALS})
    expect_low_halves("fcntl", {3, command}, kAllow);
}

TEST_P(EveryFilter, refuses_shared_memory_without_a_name_when_it_is_not_counted) {
  expect_low_halves("mmap", {0, 4096, 3, MAP_SHARED | MAP_ANONYMOUS},
                    variant().memfd ? kAllow : refused(EPERM));
  expect_low_halves("mmap", {0, 4096, 3, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE},
                    variant().memfd ? kAllow : refused(EPERM));
  for (std::uint64_t flags : Values{MAP_SHARED, MAP_PRIVATE, MAP_PRIVATE | MAP_ANONYMOUS})
    expect_low_halves("mmap", {0, 4096, 3, flags}, kAllow);
}

TEST_P(EveryFilter, makes_memfd_absent_when_asked) {
  expect("memfd_create", {}, variant().memfd ? kAllow : refused(ENOSYS));
  expect("memfd_secret", {}, refused(EPERM));
}

// What joins a jar keeps the filter it comes with: none of the jar's own may allow more.
TEST_P(EveryFilter, refuses_all_that_who_joins_is_refused_already) {
  auto joins = std::ranges::find_if(compiled(), [&](const Compiled& other) {
    return other.variant.joins && other.variant.arch == variant().arch;
  });
  ASSERT_NE(joins, compiled().end());
  for (int nr = 0; nr <= kNewestCall; ++nr)
    for (std::uint64_t fill : Values{0ULL, 1ULL, 2ULL, ~0ULL}) {
      const seccomp_data call =
          call_of(audit_arch(variant().arch), nr, {fill, fill, fill, fill, fill, fill});
      if (verdict(GetParam(), call) != bpf::describe(kAllow)) continue;
      EXPECT_EQ(verdict(*joins, call), bpf::describe(kAllow)) << nr << " with " << fill;
    }
}

// ---- golden ----------------------------------------------------------------

TEST_P(EveryFilter, is_the_golden_one) {
  const std::string path = std::string(BELLJAR_GOLDEN_DIR "/seccomp/") + name(variant()) + ".txt";
  const std::string text = bpf::disassemble(GetParam().program);
  if (std::getenv("BELLJAR_UPDATE_GOLDEN")) {
    std::ofstream(path) << text;
    return;
  }
  std::stringstream golden;
  golden << std::ifstream(path).rdbuf();
  EXPECT_TRUE(golden.str() == text) << path << " differs: run with BELLJAR_UPDATE_GOLDEN=1 and "
                                    << "read the difference in git";
}

}  // namespace
}  // namespace belljar::seccomp
