// joiner: a fork of the process it is loaded into becomes a process of a jar.
//
// A library for the warm interpreter (session/warm.py), which passes it a jar's init and a
// socket. From entering the jar until every layer is in force, only what is here runs, and no
// Python: in between, the fork has capabilities in a jar whose guests may be hostile. It opens
// no file there, and nobody there can trace it or read its memory.
//
//   the interpreter   vfork
//     the way in      setns, the jar's uid, fork     shares the interpreter's memory, and ends
//       the worker    layers, in the order of launcher/enter.cc
//
// Two processes, because a pid namespace is entered by being born in it; the first is a vfork,
// because a fork of an interpreter takes a millisecond for each 60 MiB. The second is the C
// library's own fork, so that what libraries do at a fork is done, and the interpreter, being
// its subreaper, becomes its parent when the first has ended.
//
// Without a C library of its own, since it does not know which one the interpreter has.
#include <asm/signal.h>
#include <asm/socket.h>
#include <asm/unistd.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/fcntl.h>
#include <linux/filter.h>
#include <linux/prctl.h>
#include <linux/resource.h>
#include <linux/seccomp.h>
#include <linux/socket.h>
#include <linux/wait.h>

#include <cstddef>
#include <cstdint>

#include "launcher/join_protocol.h"
#include "launcher/raw_syscall.h"

// ---- what the interpreter sees ----------------------------------------------------

extern "C" {

// Filled by session/warm.py, but for the last two.
struct BelljarFork {
  int (*fork)();           // the C library's
  std::int64_t rseq;       // where its rseq area is, from the thread pointer; 0: there is none
  std::uint64_t files[2];  // the limit on descriptors, which the interpreter has raised
  std::uint64_t namespaces;
  std::int64_t uid;
  std::int32_t status_fd;
  std::int32_t init_fd;
  std::int64_t pid;
  const char* failed;
};

// In the interpreter: the worker's pid, or an errno below zero, and `failed` says of what. In
// the worker, once it has joined: 0. One that cannot join says so on its socket, and ends.
__attribute__((visibility("default"))) std::int64_t belljar_fork(BelljarFork* fork);

// In the worker: what the jar's plan has for its environment.
__attribute__((visibility("default"))) const char* belljar_variables(std::uint32_t* size);

// vfork: returns twice on one stack, so its own return address must not be there.
__attribute__((returns_twice, visibility("hidden"))) long belljar_vfork();
}

#if defined(__x86_64__)
static_assert(__NR_vfork == 58);
asm(".globl belljar_vfork\n.hidden belljar_vfork\n.type belljar_vfork, @function\n"
    "belljar_vfork:\n\tpop %r9\n\tmov $58, %eax\n\tsyscall\n\tpush %r9\n\tret\n");
#elif defined(__aarch64__)
static_assert(__NR_clone == 220);
asm(".globl belljar_vfork\n.hidden belljar_vfork\n.type belljar_vfork, %function\n"
    "belljar_vfork:\n\tmov x0, #0x4111\n\tmov x1, xzr\n\tmov x2, xzr\n\tmov x3, xzr\n\tmov x4, "
    "xzr\n\tmov x8, #220\n\tsvc #0\n\tret\n");  // CLONE_VM | CLONE_VFORK | SIGCHLD
#endif

namespace {

using namespace belljar::join;

constexpr std::uint64_t kAllSignals = ~0ULL;
constexpr int kControlFd = 3;  // of a worker
constexpr int kStatusFd = 4;   // until it has joined

// Only the worker writes here, in its own copy.
alignas(8) char the_request[kMaxRequest];

[[noreturn]] void exit(int code) {
  for (;;) sys(__NR_exit_group, code);
}

bool is_failure(long result) { return result < 0 && result > -4096; }

// ---- the worker -------------------------------------------------------------------

// How code that is not yet the guest's says that it cannot go on.
class Report {
 public:
  explicit Report(int fd) : fd_(fd) {}
  void move_to(int fd) { fd_ = fd; }

  long must(long result, const char* step) const {
    if (is_failure(result)) fail(static_cast<int>(-result), step);
    return result;
  }
  [[noreturn]] void fail(int err, const char* step) const {
    send(kFailed, static_cast<std::uint32_t>(err), step);
    exit(125);
  }
  // Without an address, so that the broker need not be asked.
  void send(char kind, std::uint32_t number, const char* text) const {
    char message[80] = {kind};
    for (int i = 0; i < 4; ++i) message[1 + i] = static_cast<char>(number >> (8 * i));
    std::size_t size = 5;
    while (*text != '\0' && size < sizeof message) message[size++] = *text++;
    sys(__NR_sendto, fd_, message, size, MSG_NOSIGNAL, nullptr, 0);
  }
  // Until the supervisor has done its part.
  void wait() const {
    char go = 0;
    sys(__NR_read, fd_, &go, 1);
    if (go != kGoOn) exit(125);  // it has given us up
  }

 private:
  int fd_;
};

struct Message {
  KernelIovec part;
  struct {
    KernelCmsg header;
    int fds[6];
  } control;
  KernelMsghdr header;

  Message(void* data, std::size_t size) : part{data, size}, control{}, header{} {
    header.iov = &part;
    header.iov_count = 1;
    header.control = &control;
  }
};

void introduce(int status_fd, const Report& report) {
  const long pidfd = report.must(sys(__NR_pidfd_open, sys(__NR_getpid), 0), "pidfd_open");
  char byte = kPidfd;
  Message message(&byte, 1);
  message.control.header = {sizeof(KernelCmsg) + sizeof(int), SOL_SOCKET, SCM_RIGHTS};
  message.control.fds[0] = static_cast<int>(pidfd);
  message.header.control_size = message.control.header.size;
  report.must(sys(__NR_sendmsg, status_fd, &message.header, MSG_NOSIGNAL), "send a pidfd");
}

struct Received {
  const Request* request;
  const Limit* limits;
  sock_filter* listener;
  sock_filter* filter;
  const char* folder;
  int control_fd, stdio_fds[3], ruleset_fd;
};

// Where the strings begin.
std::uint64_t strings_of(const Request& request) {
  return sizeof request + request.limits * sizeof(Limit) +
         (std::uint64_t{request.listener} + request.filter) * sizeof(sock_filter);
}

Received receive(int status_fd, const Report& report) {
  Message message(the_request, sizeof the_request);
  message.header.control_size = sizeof message.control;
  const long n =
      report.must(sys(__NR_recvmsg, status_fd, &message.header, MSG_CMSG_CLOEXEC), "receive");
  const auto* request = reinterpret_cast<const Request*>(the_request);
  const std::uint64_t size = strings_of(*request) + request->folder + request->variables;
  const std::size_t fds = request->has_ruleset != 0 ? 5 : 4;
  if (static_cast<std::uint64_t>(n) != size || request->folder == 0 ||
      message.control.header.size != sizeof(KernelCmsg) + fds * sizeof(int))
    report.fail(EPROTO, "read the request");
  const auto* limits = reinterpret_cast<const Limit*>(request + 1);
  auto* listener = reinterpret_cast<sock_filter*>(the_request + sizeof *request +
                                                  request->limits * sizeof(Limit));
  const int* of = message.control.fds;
  return {request,
          limits,
          listener,
          listener + request->listener,
          the_request + strings_of(*request),
          of[0],
          {of[1], of[2], of[3]},
          fds == 5 ? of[4] : -1};
}

void drop_capabilities(const Report& report) {
  report.must(sys(__NR_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs");
  report.must(sys(__NR_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0),
              "clear ambient capabilities");
  long known = 0;
  for (; !is_failure(sys(__NR_prctl, PR_CAPBSET_READ, known, 0, 0, 0)); ++known)
    report.must(sys(__NR_prctl, PR_CAPBSET_DROP, known, 0, 0, 0), "drop from the bounding set");
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  report.must(sys(__NR_capset, &header, data), "capset");

  data[0].permitted = data[1].permitted = 1;  // so that a capget that fills nothing is seen
  report.must(sys(__NR_capget, &header, data), "capget");
  std::uint32_t left = 0;
  for (const auto& half : data) left |= half.effective | half.permitted | half.inheritable;
  for (long i = 0; i < known; ++i)
    left |= static_cast<std::uint32_t>(sys(__NR_prctl, PR_CAPBSET_READ, i, 0, 0, 0));
  if (left != 0 || known == 0 || sys(__NR_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
    report.fail(EPERM, "capabilities are still there");
}

// 0, 1, 2 and 3, and the report. No source is among these: the interpreter has them all open.
void place_descriptors(int status_fd, const Received& received, Report& report) {
  for (int i = 0; i < 3; ++i)
    report.must(sys(__NR_dup3, received.stdio_fds[i], i, 0), "place a descriptor");
  report.must(sys(__NR_dup3, received.control_fd, kControlFd, O_CLOEXEC), "place a descriptor");
  if (status_fd != kStatusFd)
    report.must(sys(__NR_dup3, status_fd, kStatusFd, O_CLOEXEC), "place a descriptor");
  report.move_to(kStatusFd);
  report.must(sys(__NR_close_range, kStatusFd + 1, ~0U, 0), "close descriptors");
}

void set_limits(const BelljarFork& fork, const Received& received, const Report& report) {
  const Limit files{RLIMIT_NOFILE, fork.files[0], fork.files[1]};
  report.must(sys(__NR_prlimit64, 0, files.resource, &files.soft, nullptr), "setrlimit");
  for (std::uint32_t i = 0; i < received.request->limits; ++i) {
    const Limit& limit = received.limits[i];
    report.must(sys(__NR_prlimit64, 0, limit.resource, &limit.soft, nullptr), "setrlimit");
  }
}

// The broker must have it before the first call. It takes it out of this process, since to
// send it would be such a call.
void load_listener(const Received& received, const Report& report) {
  if (received.request->listener == 0) return;
  const sock_fprog program{static_cast<unsigned short>(received.request->listener),
                           received.listener};
  constexpr unsigned long kPatient = SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
  long fd = sys(__NR_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER | kPatient,
                &program);
  if (fd == -EINVAL)  // before Linux 5.19
    fd = sys(__NR_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
  report.must(fd, "listen for calls");
  // Or the broker could not take it. Meanwhile others of the jar may be able to reach into it: by
  // then it is confined as they are, so that they gain nothing by it.
  report.must(sys(__NR_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0), "become readable");
  report.send(kListens, static_cast<std::uint32_t>(fd), "");
  report.wait();
  report.must(sys(__NR_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0), "become unreadable");
  sys(__NR_close, fd);
}

void load_filter(const Received& received, const Report& report) {
  if (received.request->filter == 0) return;
  const sock_fprog program{static_cast<unsigned short>(received.request->filter), received.filter};
  report.must(sys(__NR_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program), "load the filter");
  if (sys(__NR_prctl, PR_GET_SECCOMP, 0, 0, 0, 0) != SECCOMP_MODE_FILTER)
    report.fail(EPERM, "the filter is not in force");
}

// A child of what shares memory has none registered, and the C library would go on reading
// from the area the processor on which the interpreter was.
void register_rseq(std::int64_t offset) {
  if (offset == 0) return;
  char* thread = nullptr;
#if defined(__x86_64__)
  constexpr std::uint32_t kSignature = 0x53053053;
  asm("mov %%fs:0, %0" : "=r"(thread));
#else
  constexpr std::uint32_t kSignature = 0xd428bc00;
  asm("mrs %0, tpidr_el0" : "=r"(thread));
#endif
  constexpr long kSize = 32;
  constexpr std::ptrdiff_t kProcessor = 4;  // where its number is
  constexpr std::int32_t kNone = -2;
  char* area = thread + offset;
  if (is_failure(sys(__NR_rseq, area, kSize, 0, kSignature)))
    *reinterpret_cast<volatile std::int32_t*>(area + kProcessor) = kNone;
}

// Returns when this process is one of the jar's like any other.
void become_worker(const BelljarFork& fork) {
  Report report(fork.status_fd);
  report.must(sys(__NR_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0), "become unreadable");
  register_rseq(fork.rseq);
  introduce(fork.status_fd, report);
  const Received received = receive(fork.status_fd, report);
  if (received.request->waits != 0) report.wait();

  report.must(sys(__NR_setsid), "own session");
  drop_capabilities(report);
  report.must(sys(__NR_chdir, received.folder), "enter the workdir");
  if (received.ruleset_fd >= 0)
    report.must(sys(__NR_landlock_restrict_self, received.ruleset_fd, 0), "landlock_restrict_self");
  place_descriptors(fork.status_fd, received, report);
  set_limits(fork, received, report);
  load_filter(received, report);
  load_listener(received, report);
  // Not before: who in the jar could write into it would have a process without the filter.
  report.must(sys(__NR_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0), "become readable again");
  const char joined = kJoined;
  // If this cannot be delivered, it was given up.
  if (sys(__NR_sendto, kStatusFd, &joined, 1, MSG_NOSIGNAL, nullptr, 0) != 1) exit(125);
  sys(__NR_close, kStatusFd);
}

// ---- the way in -------------------------------------------------------------------

// Shares the interpreter's memory and stack, which waits meanwhile. Returns in the worker.
__attribute__((noinline)) void go_in(BelljarFork& fork) {
  auto must = [&](long result, const char* step) {
    if (!is_failure(result)) return;
    fork.pid = result;
    fork.failed = step;
    exit(1);
  };
  must(sys(__NR_setns, fork.init_fd, fork.namespaces), "enter the jar");
  if (fork.uid >= 0) {
    must(sys(__NR_setgroups, 0, nullptr), "setgroups");
    must(sys(__NR_setresgid, fork.uid, fork.uid, fork.uid), "setresgid");
    must(sys(__NR_setresuid, fork.uid, fork.uid, fork.uid), "setresuid");
  }
  const int pid = fork.fork();
  if (pid == 0) return become_worker(fork);
  must(pid < 0 ? -EAGAIN : 0, "fork");
  fork.pid = pid;
  exit(0);
}

}  // namespace

std::int64_t belljar_fork(BelljarFork* fork) {
  // None of the interpreter's handlers may run in between.
  std::uint64_t mask = 0;
  sys(__NR_rt_sigprocmask, SIG_SETMASK, &kAllSignals, &mask, 8);
  fork->pid = -ECHILD;  // if it is killed
  fork->failed = "go in";
  const long first = belljar_vfork();
  if (first == 0) {
    go_in(*fork);
    fork->pid = 0;
  } else if (is_failure(first)) {
    fork->pid = first;
    fork->failed = "vfork";
  } else {
    while (sys(__NR_wait4, first, nullptr, __WALL, nullptr) == -EINTR) continue;
  }
  sys(__NR_rt_sigprocmask, SIG_SETMASK, &mask, nullptr, 8);
  return fork->pid;
}

const char* belljar_variables(std::uint32_t* size) {
  const auto* request = reinterpret_cast<const Request*>(the_request);
  *size = request->variables;
  return the_request + strings_of(*request) + request->folder;
}
