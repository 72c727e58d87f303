#include "launcher/ending.h"

#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/clone.h"
#include "base/fd.h"
#include "base/signals.h"
#include "base/syscall.h"
#include "launcher/raw_syscall.h"

namespace belljar::launcher {
namespace {

// How long the process inside has. It makes two system calls.
constexpr int kBlowMs = 100;

using Stack = std::array<std::byte, 16 << 10>;

// Two steps, since a pid namespace is entered by being born in it. Each is a process that shares
// our memory, so it makes raw calls, which leave errno alone.
struct Blow {
  int init_pidfd;
  int namespaces;
  std::unique_ptr<Stack> first_stack = std::make_unique_for_overwrite<Stack>();
  std::unique_ptr<Stack> second_stack = std::make_unique_for_overwrite<Stack>();
  int pidfd = -1;  // of the second step
};

clone_args sharing_descriptors(std::uint64_t flags, Stack& stack) {
  clone_args args{};
  args.flags = flags | CLONE_FILES;
  args.stack = reinterpret_cast<std::uint64_t>(stack.data());
  args.stack_size = stack.size();
  return args;
}

[[noreturn]] void exit() {
  for (;;) sys(SYS_exit, 0);
}

void second_step(void*) {
  constexpr long kInit = 1;
  sys(SYS_kill, -1, SIGKILL);
  // The kernel leaves out the CPUs that this machine or the caller's cpuset does not have.
  std::uint64_t every_cpu[16];
  for (std::uint64_t& cpus : every_cpu) cpus = ~0ULL;
  sys(SYS_sched_setaffinity, kInit, sizeof every_cpu, every_cpu);
  exit();
}

void first_step(void* of) {
  Blow& blow = *static_cast<Blow*>(of);
  if (sys(SYS_setns, blow.init_pidfd, blow.namespaces) < 0) exit();  // init has just ended
  // CLONE_PARENT hands it to us, who outlive this step.
  clone_args args = sharing_descriptors(CLONE_PARENT | CLONE_PIDFD, *blow.second_stack);
  args.pidfd = reinterpret_cast<std::uint64_t>(&blow.pidfd);
  raw_clone_sharing_memory(args, second_step, nullptr);
  exit();
}

void reap(idtype_t type, int id) {
  siginfo_t ignored{};
  retry([&] { return ::syscall(SYS_waitid, type, id, &ignored, WEXITED | __WALL, nullptr); });
}

}  // namespace

void kill_within(int init_pidfd, Namespaces namespaces) {
  Blow blow{
      .init_pidfd = init_pidfd,
      .namespaces = CLONE_NEWPID | (namespaces == Namespaces::pid_and_user ? CLONE_NEWUSER : 0)};
  const SignalsBlocked blocked;  // no handler of the caller's may run in the memory they share
  const long first = raw_clone_sharing_memory(sharing_descriptors(CLONE_VFORK, *blow.first_stack),
                                              first_step, &blow);
  if (first < 0) return;  // no process can be made now: the caller tries again
  reap(P_PID, static_cast<int>(first));
  const Fd second(blow.pidfd);
  if (!second) return;
  pollfd ended{.fd = second.get(), .events = POLLIN, .revents = 0};
  if (retry([&] { return ::poll(&ended, 1, kBlowMs); }) <= 0)  // a guest has stopped it
    ::syscall(SYS_pidfd_send_signal, second.get(), SIGKILL, nullptr, 0);
  reap(P_PIDFD, second.get());  // before the stack that it runs on goes
}

}  // namespace belljar::launcher
