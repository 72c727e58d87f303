#include "launcher/launch.h"

#include <linux/magic.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>

#include "base/child.h"
#include "base/clone.h"
#include "base/passing.h"
#include "base/signals.h"
#include "base/syscall.h"
#include "base/uapi.h"
#include "launcher/granted_sockets.h"
#include "launcher/init_image.h"
#include "launcher/join.h"
#include "launcher/program.h"
#include "launcher/request.h"
#include "launcher/terminal.h"
#include "layers/process.h"

namespace belljar::launcher {
namespace {

using protocol::Kind;

// What fits into a socket's buffer without init reading it.
constexpr std::size_t kSendAhead = 64 << 10;

Result<Fd> keep_high(int fd, const char* what) {
  if (fd < 0) return fail(what, errno);
  Fd low(fd);
  if (fd >= process::kFirstHighFd) return low;
  Fd high(::fcntl(fd, F_DUPFD_CLOEXEC, process::kFirstHighFd));
  if (!high) return fail(what, errno, "raise the limit on open files (ulimit -n)");
  return high;
}

// The init program. Made once per process: its jars share it.
Result<int> init_program() {
  static Result<Fd> program = []() -> Result<Fd> {
    Fd file = TRY(make_program("belljar-init", init_image()));
    return keep_high(file.release(), "make init");
  }();
  if (!program) return std::unexpected(program.error());
  return program->get();
}

// The lines by which programs inside know the jar's own user.
struct UserLines {
  std::string user, group;
  UserLines(uid_t uid, const std::string& home) {
    const std::string id = std::to_string(uid);
    user = "belljar:x:" + id + ":" + id + ":belljar guest:" + home + ":/bin/sh\n";
    group = "belljar:x:" + id + ":\n";
  }
};

// The trees of a view, one slot per op. The child fills the slots that are empty with
// descriptors of its own, in memory that we share with it but with numbers that mean
// something else here: so what is ours to close stands apart.
class Trees {
 public:
  explicit Trees(std::size_t count) : slots_(count, -1) {}
  Status open(const view::Plan& plan) {
    Status status = view::open_trees(plan, slots_);
    for (int fd : slots_)
      if (fd >= 0) ours_.emplace_back(fd);
    return status;
  }
  std::span<int> slots() { return slots_; }

 private:
  std::vector<int> slots_;
  std::vector<Fd> ours_;
};

std::string home_of(const std::vector<std::string>& environment) {
  for (const std::string& variable : environment)
    if (variable.starts_with("HOME=")) return variable.substr(5);
  return "/";
}

// Lets the child go on, which waits for us.
Status release(int go_fd) {
  const std::uint64_t go = 1;
  if (::write(go_fd, &go, sizeof go) < 0) return fail("release the child", errno);
  return {};
}

// Root's part after the clone: now the jar has a pid, and so a uid.
Status name_the_jar(Entry& entry, pid_t init, const UserLines& lines, int go_fd) {
  entry.jar_uid = identity::kFirstJarUid + static_cast<uid_t>(init);
  entry.late.user = lines.user;
  entry.late.group = lines.group;
  const Plan& plan = *entry.plan;
  TRY(identity::map(*plan.identity, init, entry.jar_uid));
  std::optional<idmap::Maps> until_released;
  if (plan.view)
    until_released.emplace(
        TRY(view::show_as_owned_by(*plan.view, entry.jar_uid, entry.late.trees)));
  return release(go_fd);
}

void enter_clone(void* entry) { enter(*static_cast<const Entry*>(entry)); }

bool is_readable(int fd) {
  pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
  return retry([&] { return ::poll(&ready, 1, 0); }) > 0 && (ready.revents & POLLIN) != 0;
}

Error setup_error(int error_fd) {
  SetupFailure failure{};
  if (!is_readable(error_fd) || ::read(error_fd, &failure, sizeof failure) != sizeof failure)
    return {.what = "the child ended before it could become init", .err = 0, .hint = {}};
  std::string what = failure.step;
  if (failure.detail[0] != '\0') what.append(" ").append(failure.detail);
  std::string hint;
  if (failure.err == EACCES && what.starts_with("view: open target"))
    hint =
        "the guest is another user, whom a folder above lets not pass: allow that (chmod o+x), "
        "or choose a profile that does not show the whole host, such as developer";
  return {.what = what, .err = failure.err, .hint = std::move(hint)};
}

// Where news of the child comes from. Another thread may fork at any time and hold
// the far ends open, so a hang-up is never waited for: the pidfd tells the end.
struct News {
  int error_fd;
  int control_fd;
  int pidfd;
};

// Blocks until the child has said something, or failed: then what went wrong.
Status wait_for_child(const News& news) {
  pollfd fds[3] = {{.fd = news.error_fd, .events = POLLIN, .revents = 0},
                   {.fd = news.control_fd, .events = POLLIN, .revents = 0},
                   {.fd = news.pidfd, .events = POLLIN, .revents = 0}};
  for (;;) {
    if (retry([&] { return ::poll(fds, 3, -1); }) < 0) return fail("wait for init", errno);
    if ((fds[0].revents & POLLIN) != 0) return std::unexpected(setup_error(news.error_fd));
    if ((fds[1].revents & POLLIN) != 0) return {};
    if (fds[2].revents != 0) return std::unexpected(setup_error(news.error_fd));
    if (fds[0].revents != 0) fds[0].fd = -1;  // hung up: what a good exec looks like
    if (fds[1].revents != 0) fds[1].fd = -1;  // the end of it comes from the pidfd
  }
}

// What the child says next must be this.
Result<std::uint32_t> expect(Kind kind, const News& news) {
  TRY(wait_for_child(news));
  protocol::Header header{};
  ssize_t n = retry([&] { return ::recv(news.control_fd, &header, sizeof header, MSG_DONTWAIT); });
  if (n != sizeof header || header.kind != kind) return std::unexpected(setup_error(news.error_fd));
  return header.value;
}

// A descriptor of the child's, by its number there.
Result<Fd> take_from(int pidfd, int number) {
  Fd fd(static_cast<int>(::syscall(SYS_pidfd_getfd, pidfd, number, 0)));
  if (!fd)
    return fail("take a descriptor out of the jar", errno,
                errno == EPERM ? "kernel.yama.ptrace_scope must be below 3" : "");
  return fd;
}

// The broker begins before init does, so that no connection is missed.
Result<std::unique_ptr<broker::Broker>> start_broker(const Plan& plan, const News& news,
                                                     BrokerParts& parts) {
  const std::uint32_t listener = TRY(expect(Kind::listening, news));
  broker::Doors taken;
  taken.notifications = TRY(take_from(news.pidfd, static_cast<int>(listener)));
  taken.dns_udp = TRY(take_from(news.pidfd, parts.doors.dns_udp_fd));
  taken.dns_tcp = TRY(take_from(news.pidfd, parts.doors.dns_tcp_fd));
  taken.sockets = std::move(parts.sockets);
  return broker::Broker::start(plan.policy, *plan.rules, std::move(taken), parts.on_event);
}

// The same for the connects that are made for a guest.
Result<std::unique_ptr<broker::Connects>> start_connects(const Plan& plan, const News& news) {
  const std::uint32_t listener = TRY(expect(Kind::listening, news));
  Fd notifications = TRY(take_from(news.pidfd, static_cast<int>(listener)));
  return broker::Connects::start(
      std::move(notifications),
      {.own = TRY(granted_sockets(plan.layout)), .network = plan.policy.network != Network::none});
}

}  // namespace

void let_guest_reopen(std::span<const int> fds) {
  for (int fd : fds) {
    struct stat st{};
    struct statfs fs{};
    if (::fstat(fd, &st) < 0 || !S_ISFIFO(st.st_mode)) continue;
    if (::fstatfs(fd, &fs) < 0 || fs.f_type != PIPEFS_MAGIC) continue;  // a named one is not ours
    const mode_t more = (::fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY ? 0444 : 0222;
    ::fchmod(fd, (st.st_mode & 0777) | more);  // if not, it is as it was
  }
}

Result<Jar> Jar::start(const Plan& plan, const Command* first, const broker::OnEvent& on_event,
                       const Beneath* beneath) {
  Jar jar;
  jar.phases_ = std::make_unique<PhaseClock>();
  jar.environment_ = plan.environment;
  jar.workdir_ = plan.layout.start.empty() ? plan.layout.workdir : plan.layout.start;
  jar.pid_namespace_ = plan.pid_namespace;
  jar.user_namespace_ = plan.identity && plan.identity->user_namespace;
  jar.other_uid_ = plan.identity && plan.identity->root;
  TRY(jar.launch(plan, first, on_event, beneath));
  return jar;
}

// Until init says that it is there, the child may be using our memory.
Status Jar::wait_until_ready(const Plan& plan, int error_fd, BrokerParts parts) {
  const News news{error_fd, control_.get(), init_pidfd_.get()};
  if (plan.watchdog) {
    TRY(wait_for_child(news));
    watchdog_ = std::make_shared<Watchdog>(
        TRY(Watchdog::receive(news.control_fd, plan.outside_proc ? init_ : 0)));
  }
  if (plan.role == Role::joinable && plan.landlock) {
    TRY(wait_for_child(news));
    ruleset_ = TRY(receive_ruleset(news.control_fd));
  }
  if (plan.has_broker()) broker_ = TRY(start_broker(plan, news, parts));
  if (plan.makes_connects()) connects_ = TRY(start_connects(plan, news));
  if (plan.notify) TRY(release(parts.go_fd));
  (void)TRY(expect(Kind::ready, news));
  refuse_descriptors(control_.get());  // init has sent all that it will
  return {};
}

Status Jar::launch(const Plan& plan, const Command* first, const broker::OnEvent& on_event,
                   const Beneath* beneath) {
  phases_->mark("begin");
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) < 0)
    return fail("socketpair", errno);
  control_ = Fd(sockets[0]);
  Fd init_end = TRY(keep_high(sockets[1], "keep init's socket"));
  Pipe error = TRY(make_pipe());
  error.write = TRY(keep_high(error.write.release(), "keep the error pipe"));
  Fd self =
      TRY(keep_high(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)), "pidfd_open"));
  Fd go;
  if (other_uid_ || plan.notify) go = TRY(keep_high(::eventfd(0, EFD_CLOEXEC), "eventfd"));
  Fd broker_end, sockets_end;
  if (plan.has_broker()) {
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) < 0)
      return fail("socketpair", errno);
    broker_end = Fd(sockets[0]);
    sockets_end = TRY(keep_high(sockets[1], "keep the broker's socket"));
  }

  Fd terminal;
  if (first != nullptr && first->has_terminal)
    terminal = TRY(keep_high(::fcntl(first->stdio_fds[0], F_DUPFD_CLOEXEC, process::kFirstHighFd),
                             "keep the terminal"));

  std::string request;
  GuestStdio stdio;
  if (first != nullptr) {
    stdio = TRY(GuestStdio::of(*first));
    if (plan.makes_connects()) TRY(stdio.refuse_datagrams());
    if (other_uid_) let_guest_reopen(stdio.fds());
    request = TRY(encode_spawn(*first, next_id_++, workdir_, environment_));
    if (request.size() <= kSendAhead) {
      TRY(send_all(control_.get(), request, stdio.fds()));
      request.clear();
    }
  }
  if (plan.cgroup) group_ = TRY(cgroup::Group::make(*plan.cgroup));
  Trees trees(plan.view ? plan.view->ops.size() : 0);
  if (other_uid_ && plan.view) TRY(trees.open(*plan.view));

  using Stack = std::array<std::byte, 64 << 10>;
  auto stack = std::make_unique_for_overwrite<Stack>();
  auto second_stack = std::make_unique_for_overwrite<Stack>();
  net::Doors doors;
  Entry entry{.plan = &plan,
              .late = {.trees = trees.slots(), .user = {}, .group = {}},
              .jar_uid = 0,
              .error_fd = error.write.get(),
              .jar_uid_comes = other_uid_,
              .go_fd = go.get(),
              .control_fd = init_end.get(),
              .supervisor_fd = self.get(),
              .sockets_fd = sockets_end.get(),
              .init_fd = TRY(init_program()),
              .terminal_fd = terminal.get(),
              .phases = phases_.get(),
              .doors = &doors,
              .second_stack = *second_stack};
  clone_args args{};
  args.flags = plan.clone_flags() | CLONE_PIDFD;
  if (plan.view) args.flags &= ~std::uint64_t{CLONE_NEWNET};  // made beside the view
  int pidfd = -1;
  args.pidfd = reinterpret_cast<std::uint64_t>(&pidfd);
  args.stack = reinterpret_cast<std::uint64_t>(stack->data());
  args.stack_size = stack->size();
  if (group_.fd() >= 0) {
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = static_cast<__u64>(group_.fd());
  }
  phases_->mark("prepare");

  // The child must not run a handler of the caller's in the memory they share.
  SignalsBlocked blocked;
  if (beneath != nullptr) above_ = beneath->above;
  init_ = beneath != nullptr ? TRY(clone_beneath(*beneath, args, enter_clone, &entry))
                             : TRY(clone_sharing_memory(args, enter_clone, &entry));
  init_pidfd_ = Fd(pidfd);
  UserLines lines(identity::kFirstJarUid + static_cast<uid_t>(init_), home_of(environment_));
  Status status;
  if (other_uid_) status = name_the_jar(entry, init_, lines, go.get());
  init_end.reset();
  sockets_end.reset();
  error.write.reset();
  if (status)
    status = wait_until_ready(plan, error.read.get(),
                              {doors, go.get(), std::move(broker_end), on_event});
  if (!status) {
    end();  // before the memory that the child may still use goes
    return status;
  }
  phases_->mark("init");
  if (!request.empty()) TRY(send_all(control_.get(), request, stdio.fds()));
  return {};
}

}  // namespace belljar::launcher
