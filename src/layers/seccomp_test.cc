// The layer as the launcher uses it: which filter is chosen, and that it holds
// on this kernel. What every filter says is in seccomp_filters_test.cc.
#include "layers/seccomp.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>

#include "base/child.h"
#include "layers/seccomp_variant.h"

namespace belljar::seccomp {
namespace {

// ---- resolve ---------------------------------------------------------------

constexpr Support kHost{.filters = true};

Plan plan_of(const Policy& policy, Extra extra = {}) {
  return resolve(policy, kHost, extra).value_or(std::nullopt).value_or(Plan{});
}

// Which of the compiled filters the plan is.
std::string chosen(const Policy& policy, Extra extra = {}) {
  const Plan plan = plan_of(policy, extra);
  for (const Compiled& filter : compiled())
    if (filter.program.data() == plan.filter.filter && filter.program.size() == plan.filter.len)
      return name(filter.variant).substr(name(filter.variant).find('-') + 1);
  return "none";
}

TEST(SeccompResolve, gives_no_plan_on_a_host_without_filters) {
  auto plan = resolve(Policy{}, Support{}, {});
  ASSERT_TRUE(plan);
  EXPECT_FALSE(*plan);
}

TEST(SeccompResolve, chooses_by_list_network_and_memfd) {
  Policy policy;
  policy.syscalls = Syscalls::deny_list;
  policy.network = Network::full;
  EXPECT_EQ(chosen(policy), "deny_list");
  EXPECT_EQ(chosen(policy, {.no_memfd = true}), "deny_list-no_memfd");
  policy.network = Network::none;
  EXPECT_EQ(chosen(policy), "deny_list-no_network");
  policy.syscalls = Syscalls::allow_list;
  EXPECT_EQ(chosen(policy, {.no_memfd = true}), "allow_list-no_network-no_memfd");
  EXPECT_EQ(chosen(policy, {.joins = true}), "deny_list-joins");
  for (Network network : {Network::loopback, Network::hosts}) {
    policy.network = network;
    EXPECT_EQ(chosen(policy), "allow_list");
  }
}

// ---- on this kernel --------------------------------------------------------

// The status of a child that loads the filter of `policy` and runs `body`; a
// fork each, since a filter cannot be taken off again.
int status_under(const Policy& policy, const std::function<int()>& body, Extra extra = {}) {
  const Plan plan = plan_of(policy, extra);
  pid_t pid = ::fork();
  if (pid == 0) {
    apply(plan, Child(STDERR_FILENO));
    ::_exit(body());
  }
  int status = -1;
  ::waitpid(pid, &status, 0);
  return status;
}

int errno_of(long rc) { return rc < 0 ? errno : 0; }

class OnThisKernel : public testing::TestWithParam<Syscalls> {
 protected:
  static Policy policy(Network network = Network::full) {
    Policy out;
    out.syscalls = GetParam();
    out.network = network;
    return out;
  }

  static void expect_errno(int err, const std::function<long()>& call,
                           Network network = Network::full, Extra extra = {}) {
    int status = status_under(policy(network), [&] { return errno_of(call()); }, extra);
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), err) << strerrorname_np(WEXITSTATUS(status));
  }
};

INSTANTIATE_TEST_SUITE_P(Seccomp, OnThisKernel,
                         testing::Values(Syscalls::deny_list, Syscalls::allow_list),
                         [](const auto& param) {
                           return param.param == Syscalls::deny_list ? "deny_list" : "allow_list";
                         });

TEST(SeccompProbe, finds_filters_by_loading_one) { EXPECT_TRUE(probe().filters); }

TEST_P(OnThisKernel, ordinary_work_goes_on) {
  std::string dir = testing::TempDir() + "seccomp_XXXXXX";
  ASSERT_TRUE(::mkdtemp(dir.data()));
  const std::string sub = dir + "/sub";
  expect_errno(0, [&] { return ::mkdir(sub.c_str(), 0755); });
  expect_errno(0, [&] { return ::chmod(sub.c_str(), 01755); });
  expect_errno(0, [&] { return ::rmdir(sub.c_str()); });
  expect_errno(0, [] { return ::execl("/bin/sh", "sh", "-c", "echo | cat >/dev/null", nullptr); });
  ::rmdir(dir.c_str());
}

TEST_P(OnThisKernel, set_id_bits_are_refused) {
  std::string dir = testing::TempDir() + "seccomp_XXXXXX";
  ASSERT_TRUE(::mkdtemp(dir.data()));
  const std::string file = dir + "/file";
  expect_errno(EPERM, [&] { return ::chmod(dir.c_str(), 02755); });
  expect_errno(EPERM, [&] { return ::open(file.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 04755); });
  expect_errno(0, [&] { return ::open(file.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0755); });
  struct stat st{};
  EXPECT_EQ(::stat(file.c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & (S_ISUID | S_ISGID), 0U);
  ::unlink(file.c_str());
  ::rmdir(dir.c_str());
}

TEST_P(OnThisKernel, new_namespaces_are_refused) {
  ASSERT_EQ(::unshare(0), 0);  // the control
  expect_errno(EPERM, [] { return ::unshare(0); });
  expect_errno(EPERM, [] { return ::syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0); });
  expect_errno(ENOSYS, [] { return ::syscall(SYS_clone3, nullptr, 0); });
}

TEST_P(OnThisKernel, terminal_injection_is_refused) {
  expect_errno(EPERM, [] { return ::ioctl(STDIN_FILENO, TIOCSTI, "x"); });
  // Another ioctl comes as far as the missing descriptor.
  expect_errno(EBADF, [] { return ::ioctl(-1, TIOCGWINSZ, nullptr); });
}

TEST_P(OnThisKernel, sockets_follow_the_network) {
  auto internet = [] { return ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); };
  auto local = [] { return ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); };
  expect_errno(0, internet, Network::full);
  expect_errno(EAFNOSUPPORT, internet, Network::none);
  expect_errno(0, local, Network::none);
}

TEST_P(OnThisKernel, memfd_is_absent_when_asked) {
  auto memfd = [] { return ::memfd_create("x", MFD_CLOEXEC); };
  expect_errno(0, memfd);
  expect_errno(ENOSYS, memfd, Network::full, {.no_memfd = true});
}

#if defined(__x86_64__)
TEST_P(OnThisKernel, x32_is_killed) {
  int status = status_under(policy(), [] {
    ::syscall(0x40000000 + SYS_getpid);
    return 0;
  });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS) << status;
}

TEST_P(OnThisKernel, int80_is_killed) {
  constexpr int kGetpid32 = 20;
  int status = status_under(policy(), [] {
    int rc = kGetpid32;
    asm volatile("int $0x80" : "+a"(rc) : : "memory", "r8", "r9", "r10", "r11");
    return 0;
  });
  // Without 32-bit support in the kernel the instruction itself is a fault.
  EXPECT_TRUE(WIFSIGNALED(status) && (WTERMSIG(status) == SIGSYS || WTERMSIG(status) == SIGSEGV))
      << status;
}
#endif

}  // namespace
}  // namespace belljar::seccomp
