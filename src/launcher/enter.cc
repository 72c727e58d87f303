#include "launcher/enter.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <ctime>
#include <utility>

#include "base/child.h"
#include "base/clone.h"
#include "base/syscall.h"
#include "launcher/join.h"
#include "launcher/protocol.h"
#include "launcher/watchdog.h"
#include "layers/caps.h"
#include "layers/process.h"

namespace belljar::launcher {
namespace {

// The parent may be killed while we wait, and nothing else would end us then.
void wait_for_parent(const Entry& entry, const Child& child) noexcept {
  pollfd ready[2] = {{.fd = entry.go_fd, .events = POLLIN, .revents = 0},
                     {.fd = entry.supervisor_fd, .events = POLLIN, .revents = 0}};
  child.must(retry([&] { return ::poll(ready, 2, -1); }) > 0, "wait for the supervisor");
  if (ready[1].revents != 0) ::_exit(1);
  std::uint64_t go = 0;
  child.must(::read(entry.go_fd, &go, sizeof go) == sizeof go, "wait for the supervisor");
}

// From the first connect on somebody must be there to answer. The supervisor takes its
// descriptors out of this process itself: sending them is one of the calls that would wait.
void wait_for_supervisor(const Entry& entry, int listener_fd, const Child& child) noexcept {
  const protocol::Header header{protocol::Kind::listening, 0,
                                static_cast<std::uint32_t>(listener_fd), 0};
  child.must(::write(protocol::kControlFd, &header, sizeof header) == sizeof header,
             "call the supervisor");
  wait_for_parent(entry, child);
}

void make_view(void* of) {
  const Entry& entry = *static_cast<const Entry*>(of);
  view::apply(*entry.plan->view, entry.late, Child(entry.error_fd));
  ::syscall(SYS_exit, 0);  // this thread alone
}

// The kernel takes as long to make a network namespace as we do to make the view, so a
// second thread makes the view meanwhile. The two share errno, which is the view's until
// they are one again: here nothing fails by then but what ends them both.
void make_view_and_net(const Entry& entry, const Child& child) noexcept {
  std::atomic<int> runs = 1;
  static_assert(sizeof runs == sizeof(int) && decltype(runs)::is_always_lock_free);
  clone_args args{};
  args.flags = CLONE_THREAD | CLONE_SIGHAND | CLONE_FS | CLONE_FILES | CLONE_CHILD_CLEARTID;
  args.child_tid = reinterpret_cast<std::uint64_t>(&runs);
  args.stack = reinterpret_cast<std::uint64_t>(entry.second_stack.data());
  args.stack_size = entry.second_stack.size();
  void* const argument = const_cast<Entry*>(&entry);
  const bool alone = raw_clone_sharing_memory(args, make_view, argument) < 0;
  if (alone) view::apply(*entry.plan->view, entry.late, child);
  child.must(::syscall(SYS_unshare, CLONE_NEWNET) == 0, "net: make a namespace");
  while (!alone && runs != 0)
    ::syscall(SYS_futex, &runs, FUTEX_WAIT, 1, nullptr, nullptr, 0);  // the kernel sets it
}

}  // namespace

void PhaseClock::mark(const char* name) noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  if (count == kMax) return;
  names[count] = name;
  at[count++] = static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
                static_cast<std::uint64_t>(now.tv_nsec);
}

// The whole sandbox, in the order the kernel requires. Read this function first.
void enter(const Entry& entry) noexcept {
  const Plan& plan = *entry.plan;
  const Child child(entry.error_fd);
  PhaseClock& clock = *entry.phases;
  clock.mark("clone");

  if (entry.jar_uid_comes) wait_for_parent(entry, child);
  if (plan.identity) identity::apply(*plan.identity, entry.jar_uid, child);
  clock.mark("identity");

  Fd settings = plan.net ? net::open_settings(*plan.net) : Fd();
  if (plan.view && plan.net)
    make_view_and_net(entry, child);
  else if (plan.view)
    view::apply(*plan.view, entry.late, child);
  clock.mark("view");
  // Beyond this point the host's files cannot be reached by path.

  if (plan.watchdog) hand_out_counters(entry.control_fd, child);
  if (plan.net) net::apply(*plan.net, std::move(settings), *entry.doors, child);
  clock.mark("net");

  const bool given = entry.terminal_fd >= 0;
  process::apply(given ? process::Terminal::callers : process::Terminal::none, child);
  const int children_fd = plan.pid_namespace ? -1 : process::open_children(child);
  caps::apply(child);
  clock.mark("caps");
  // Beyond this point nothing of the above can be undone.

  if (plan.landlock) {
    const Fd ruleset = landlock::apply(*plan.landlock, entry.terminal_fd, child);
    if (plan.role == Role::joinable) hand_out_ruleset(entry.control_fd, ruleset.get(), child);
  }
  clock.mark("landlock");

  // Only now, because a small limit on descriptors would stop the steps above.
  process::keep_only({{entry.control_fd, protocol::kControlFd},
                      {entry.supervisor_fd, protocol::kSupervisorFd},
                      {children_fd, protocol::kChildrenFd},
                      {entry.sockets_fd, protocol::kSocketsFd}},
                     child);
  rlimit::apply(plan.rlimit, child);
  clock.mark("limits");

  const int listener_fd = plan.notify ? notify::apply(*plan.notify, child) : -1;
  // seccomp goes last: anything after it would have to be allowed to the guest.
  if (plan.seccomp) seccomp::apply(*plan.seccomp, child);
  clock.mark("seccomp");

  if (plan.notify) wait_for_supervisor(entry, listener_fd, child);
  const char* const arguments[] = {"belljar-init", plan.pid_namespace ? "1" : "0",
                                   plan.has_broker() ? "1" : "0", nullptr};
  const char* const environment[] = {nullptr};
  ::syscall(SYS_execveat, entry.init_fd, "", arguments, environment, AT_EMPTY_PATH);
  child.die(errno, "execute init");
}

}  // namespace belljar::launcher
