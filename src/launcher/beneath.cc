#include "launcher/beneath.h"

#include <linux/securebits.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/fd.h"
#include "base/pidfd.h"
#include "base/syscall.h"

namespace belljar::launcher {
namespace {

using Stack = std::array<std::byte, 16 << 10>;

// The way down, which takes two steps, since a pid namespace is entered by being born in it.
// Each step is a process that shares our memory and our descriptors (the last one's pidfd is
// then ours) and has ended when the one before goes on: so they use errno in turn. They make
// nothing but the next process, and hand it to us by CLONE_PARENT.
struct Descent {
  const Beneath& beneath;
  clone_args args;
  CloneFunction function;
  void* argument;
  std::unique_ptr<Stack> first_stack = std::make_unique_for_overwrite<Stack>();
  std::unique_ptr<Stack> second_stack = std::make_unique_for_overwrite<Stack>();
  long second = 0;  // its pid
  long born = 0;    // the jar's init: its pid below, or 0
  const char* failed = "clone";
  int err = ECHILD;  // a step that was killed leaves it so
};

clone_args step(Stack& stack) {
  clone_args args{};
  args.flags = CLONE_VFORK | CLONE_FILES;
  args.stack = reinterpret_cast<std::uint64_t>(stack.data());
  args.stack_size = stack.size();
  return args;
}

[[noreturn]] void give_up(Descent& descent, const char* failed, int err) {
  descent.failed = failed;
  descent.err = err;
  ::_exit(1);
}

[[noreturn]] void second_step(void* of) {
  Descent& descent = *static_cast<Descent*>(of);
  if (descent.beneath.owner) {
    // A user namespace belongs to the euid of who makes it. By system call, for this process
    // alone; what else root may do it must still be able to, as to enter the jar's cgroup.
    if (::prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0) < 0 ||
        ::syscall(SYS_setresuid, -1, *descent.beneath.owner, -1) < 0)
      give_up(descent, "own the jar's user namespace", errno);
  }
  descent.args.flags |= CLONE_PARENT;
  const long born = raw_clone_sharing_memory(descent.args, descent.function, descent.argument);
  if (born < 0) give_up(descent, "clone3", static_cast<int>(-born));
  descent.born = born;
  ::_exit(0);
}

[[noreturn]] void first_step(void* of) {
  Descent& descent = *static_cast<Descent*>(of);
  const int namespaces = CLONE_NEWPID | (descent.beneath.user_namespace ? CLONE_NEWUSER : 0);
  if (::setns(descent.beneath.init_pidfd, namespaces) < 0)
    give_up(descent, "enter the jar above", errno);
  clone_args args = step(*descent.second_stack);
  args.flags |= CLONE_PARENT;
  descent.second = raw_clone_sharing_memory(args, second_step, of);
  if (descent.second < 0) give_up(descent, "clone3", static_cast<int>(-descent.second));
  ::_exit(0);
}

void reap(long pid) {
  if (pid > 0) retry([&] { return ::waitpid(static_cast<pid_t>(pid), nullptr, __WALL); });
}

// It uses the caller's memory, so it must not outlive the attempt.
void end(Fd pidfd) {
  ::syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0);
  siginfo_t ignored{};
  retry([&] {
    return ::syscall(SYS_waitid, P_PIDFD, pidfd.get(), &ignored, WEXITED | __WALL, nullptr);
  });
}

}  // namespace

Result<int> clone_beneath(const Beneath& beneath, const clone_args& args, CloneFunction function,
                          void* argument) {
  Descent descent{.beneath = beneath, .args = args, .function = function, .argument = argument};
  const long first = raw_clone_sharing_memory(step(*descent.first_stack), first_step, &descent);
  if (first < 0) return fail("clone3", static_cast<int>(-first));
  reap(first);
  reap(descent.second);
  if (descent.born == 0)
    return fail(std::string("start a jar beneath another: ") + descent.failed, descent.err);
  const int pidfd = *reinterpret_cast<const int*>(args.pidfd);
  // clone3 told the number that it has below.
  Result<Pids> pids = pids_of(pidfd);
  if (!pids) {
    end(Fd(pidfd));
    return std::unexpected(pids.error());
  }
  return pids->here;
}

}  // namespace belljar::launcher
