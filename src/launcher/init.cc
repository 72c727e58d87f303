// init: pid 1 of a jar.
//
// It spawns what the supervisor asks for, reaps orphans, passes signals on, and
// ends when the supervisor ends, taking the whole jar with it. It is confined
// exactly as the guest is, since every layer was applied before it was executed,
// so what it spawns inherits all of them and one Landlock domain.
//
// A program of its own without a C library: exec of a static glibc program costs
// 0.4 ms where CPUID traps, this one 0.1 ms, and it needs 20 kB of memory.
#include <asm/signal.h>
#include <asm/socket.h>
#include <asm/unistd.h>
#include <linux/close_range.h>
#include <linux/fcntl.h>
#include <linux/poll.h>
#include <linux/prctl.h>
#include <linux/signalfd.h>
#include <linux/socket.h>
#include <linux/wait.h>

#include <cstddef>
#include <cstdint>

#include "base/uapi.h"
#include "launcher/protocol.h"
#include "launcher/raw_syscall.h"

namespace {

using namespace belljar::protocol;

constexpr int kMaxProcesses = 256;  // spawned by the supervisor and alive, not their children
constexpr std::uint64_t kAllSignals = ~0ULL;
constexpr std::uint32_t kLargestPid = 1U << 22;

struct Process {
  long pid;  // 0: the slot is free
  std::uint32_t id;
  bool leads;
};

struct Init {
  Process processes[kMaxProcesses];
  bool own_pid_namespace;
  bool has_broker;
};

[[noreturn]] void exit(int code) {
  for (;;) sys(__NR_exit_group, code);
}

bool is_failure(long result) { return result < 0 && result > -4096; }

// Without a pid namespace nothing dies by itself; every orphan has become a
// child of ours, so the list of children is the list of what is left.
void kill_children() {
  for (;;) {
    char text[4096];
    long n = sys(__NR_pread64, kChildrenFd, text, sizeof text, 0);
    if (n <= 0) return;
    long pid = 0;
    for (long i = 0; i < n; ++i) {
      // NOLINTNEXTLINE(clang-analyzer-core.*): it does not see what a raw syscall writes
      if (text[i] >= '0' && text[i] <= '9') {
        pid = pid * 10 + (text[i] - '0');
      } else if (pid > 0) {
        sys(__NR_kill, pid, SIGKILL);
        pid = 0;
      }
    }
    sys(__NR_wait4, -1, nullptr, 0, nullptr);
  }
}

[[noreturn]] void end(const Init& init) {
  if (!init.own_pid_namespace) kill_children();
  exit(0);
}

// A guest can stop a new process before it execs, and a supervisor can die in the
// middle of a request while a fork of it holds the socket: neither may keep us from
// ending with the supervisor.
void wait_readable(const Init& init, int fd) {
  for (;;) {
    KernelPollfd ready[3] = {
        {fd, POLLIN, 0}, {kSupervisorFd, POLLIN, 0}, {kControlFd, POLLRDHUP, 0}};
    sys(__NR_ppoll, ready, 3, nullptr, nullptr, 8);
    if (ready[1].revents != 0 || ready[2].revents != 0) end(init);
    if (ready[0].revents != 0) return;
  }
}

bool read_fully(const Init& init, int fd, char* to, std::size_t size) {
  while (size > 0) {
    wait_readable(init, fd);
    long n = sys(__NR_read, fd, to, size);
    if (n == -EINTR) continue;
    if (n <= 0) return false;
    to += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

void tell(Kind kind, std::uint32_t id, std::uint32_t value) {
  const Header header{kind, id, value, 0};
  // If it cannot be delivered the supervisor is gone, which the loop will see.
  sys(__NR_write, kControlFd, &header, sizeof header);
}

// ---- spawning ---------------------------------------------------------------

// The strings of a request, as the pointer arrays that exec wants.
struct Command {
  const char* folder;
  const char** paths;
  const char** arguments;
  const char** variables;
  const Spawn* spawn;
};

class Strings {
 public:
  Strings(const char* begin, const char* end) : at_(begin), end_(end) {}
  const char* next() {
    const char* text = at_;
    while (at_ < end_ && *at_ != '\0') ++at_;
    if (at_ == end_) return nullptr;  // not terminated
    ++at_;
    return text;
  }
  bool take(const char** into, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      into[i] = next();
      if (into[i] == nullptr) return false;
    }
    into[count] = nullptr;
    return true;
  }

 private:
  const char* at_;
  const char* end_;
};

// Tries each path as a shell would: the first that exists decides, but one that
// may not be executed is passed over and remembered.
int exec_first(const Command& command) {
  int error = ENOENT;
  for (const char** path = command.paths; *path != nullptr; ++path) {
    long result = sys(__NR_execve, *path, command.arguments, command.variables);
    int err = static_cast<int>(-result);
    if (err == ENOEXEC) {  // a script without "#!"
      command.arguments[-1] = "/bin/sh";
      command.arguments[0] = *path;
      sys(__NR_execve, "/bin/sh", command.arguments - 1, command.variables);
      return err;
    }
    if (err == EACCES) error = err;
    if (err != ENOENT && err != ENOTDIR && err != EACCES) return err;
  }
  return error;
}

// Without a pid namespace only this keeps the guest from killing us, and so from outliving
// everything: a domain below ours, out of which it can signal nobody. Guests of one jar
// cannot signal one another then. An errno, or 0; before ABI 6 there is none of this, and
// the plan has said so.
int keep_signals_inside() {
  const belljar::LandlockRuleset attributes{0, 0, LANDLOCK_SCOPE_SIGNAL};
  long ruleset = sys(__NR_landlock_create_ruleset, &attributes, sizeof attributes, 0);
  if (is_failure(ruleset)) return 0;
  sys(__NR_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);  // as the jar has; without it, EPERM
  long restricted = sys(__NR_landlock_restrict_self, ruleset, 0);
  sys(__NR_close, ruleset);
  return static_cast<int>(-restricted);
}

// The descriptors that travel with a request: what the process finds as 0, 1, 2 and,
// if there is a fourth, 3.
struct Descriptors {
  KernelCmsg header;
  int fds[kMaxDescriptors];

  std::size_t count() const {
    return header.size < sizeof header ? 0 : (header.size - sizeof header) / sizeof fds[0];
  }
};

[[noreturn]] void become(const Init& init, const Command& command, const Descriptors& given,
                         int error_fd) {
  int err = init.own_pid_namespace ? 0 : keep_signals_inside();
  long self = sys(__NR_getpid);
  // kill(0, …) must not reach the caller's group.
  if (command.spawn->owns_terminal != 0)
    sys(__NR_setsid);
  else
    sys(__NR_setpgid, 0, 0);
  for (std::size_t i = 0; i < given.count(); ++i)
    if (is_failure(sys(__NR_dup3, given.fds[i], i, 0))) err = EBADF;
  if (command.spawn->owns_terminal != 0) sys(__NR_ioctl, 0, TIOCSCTTY, 0);
  if (command.spawn->takes_terminal != 0) {
    int group = static_cast<int>(self);
    sys(__NR_ioctl, 0, TIOCSPGRP, &group);  // all signals are blocked, SIGTTOU too
  }
  long folder = sys(__NR_chdir, command.folder);
  if (is_failure(folder)) err = static_cast<int>(-folder) | static_cast<int>(kNoFolder);
  if (err == 0) {
    sys(__NR_rt_sigprocmask, SIG_SETMASK, &command.spawn->signal_mask, nullptr, 8);
    err = exec_first(command);
  }
  sys(__NR_write, error_fd, &err, sizeof err);
  exit(127);
}

void spawn(Init& init, const Header& header, const Command& command, const Descriptors& given) {
  Process* slot = nullptr;
  for (Process& process : init.processes)
    if (process.pid == 0) slot = &process;
  int pipe_fds[2];
  if (slot == nullptr || is_failure(sys(__NR_pipe2, pipe_fds, O_CLOEXEC)))
    return tell(Kind::failed, header.id, EAGAIN);

  long pid = sys(__NR_clone, SIGCHLD, 0, 0, 0, 0);
  if (pid == 0) become(init, command, given, pipe_fds[1]);
  sys(__NR_close, pipe_fds[1]);
  int err = is_failure(pid) ? static_cast<int>(-pid) : 0;
  if (err == 0) {
    *slot = {pid, header.id, command.spawn->leads != 0};
    // Ends when exec has closed the other side, or brings the reason why not.
    if (!read_fully(init, pipe_fds[0], reinterpret_cast<char*>(&err), sizeof err)) err = 0;
  }
  sys(__NR_close, pipe_fds[0]);
  if (err == 0) return tell(Kind::started, header.id, static_cast<std::uint32_t>(pid));
  if (slot->pid == pid) {
    slot->pid = 0;
    sys(__NR_wait4, pid, nullptr, 0, nullptr);
  }
  tell(Kind::failed, header.id, static_cast<std::uint32_t>(err));
}

void handle_spawn(Init& init, const Header& header, char* payload, const Descriptors& given) {
  const auto* request = reinterpret_cast<const Spawn*>(payload);
  const std::uint64_t pointers =
      std::uint64_t{request->paths} + request->arguments + request->variables + 5;
  if (header.size < sizeof(Spawn) || pointers > header.size) end(init);
  const std::size_t size = pointers * sizeof(char*);
  long memory = sys(__NR_mmap, 0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (is_failure(memory)) return tell(Kind::failed, header.id, ENOMEM);

  auto** table = reinterpret_cast<const char**>(memory);
  Strings strings(payload + sizeof(Spawn), payload + header.size);
  Command command{.folder = strings.next(),
                  .paths = table,
                  // One slot in front, for the shell that runs a script without "#!".
                  .arguments = table + request->paths + 2,
                  .variables = table + request->paths + request->arguments + 3,
                  .spawn = request};
  if (command.folder == nullptr || !strings.take(command.paths, request->paths) ||
      !strings.take(command.arguments, request->arguments) ||
      !strings.take(command.variables, request->variables))
    end(init);
  spawn(init, header, command, given);
  sys(__NR_munmap, memory, size);
}

// ---- requests ---------------------------------------------------------------

// The descriptors travel with the first byte of the header.
bool receive_header(const Init& init, Header& header, Descriptors& control) {
  KernelIovec part{&header, sizeof header};
  KernelMsghdr message{};
  message.iov = &part;
  message.iov_count = 1;
  message.control = &control;
  message.control_size = sizeof control;
  long n = 0;
  do n = sys(__NR_recvmsg, kControlFd, &message, MSG_CMSG_CLOEXEC);
  while (n == -EINTR);
  if (n <= 0) return false;
  if (message.control_size < sizeof(KernelCmsg)) control.header.size = 0;
  const auto got = static_cast<std::size_t>(n);
  return read_fully(init, kControlFd, reinterpret_cast<char*>(&header) + got, sizeof header - got);
}

void receive_spawn(Init& init, const Header& header, const Descriptors& control) {
  long memory =
      sys(__NR_mmap, 0, header.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  auto* payload = reinterpret_cast<char*>(memory);
  if (is_failure(memory) || !read_fully(init, kControlFd, payload, header.size)) end(init);
  if (control.count() < 3 || control.count() > kMaxDescriptors) end(init);
  handle_spawn(init, header, payload, control);
  for (std::size_t i = 0; i < control.count(); ++i) sys(__NR_close, control.fds[i]);
  sys(__NR_munmap, memory, header.size);
}

const Process* find(const Init& init, std::uint32_t id) {
  for (const Process& process : init.processes)
    if (process.pid != 0 && process.id == id) return &process;
  return nullptr;
}

void signal_process(const Init& init, std::uint32_t id, std::uint32_t signal) {
  const Process* process = find(init, id);
  if (process == nullptr) return;
  const bool reached = !is_failure(sys(__NR_kill, -process->pid, signal));
  // It may have joined another group.
  if (!reached || signal == SIGKILL) sys(__NR_kill, process->pid, signal);
}

void give_terminal(const Init& init, std::uint32_t id) {
  const Process* process = find(init, id);
  if (process == nullptr) return;
  int group = static_cast<int>(process->pid);
  long tty = sys(__NR_openat, AT_FDCWD, "/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY, 0);
  sys(__NR_ioctl, tty, TIOCSPGRP, &group);
  sys(__NR_close, tty);
}

void handle_request(Init& init) {
  Header header{};
  Descriptors control{};
  if (!receive_header(init, header, control) || header.size > kMaxPayload) end(init);
  switch (header.kind) {
    case Kind::spawn:
      receive_spawn(init, header, control);
      break;
    case Kind::signal_all:
      if (init.own_pid_namespace) sys(__NR_kill, -1, header.value);
      break;
    case Kind::signal_group:
      // Of a process that joined the jar, and so is no child of ours. Group 1 would be us, and
      // -1 everybody.
      if (init.own_pid_namespace && header.id > 1 && header.id <= kLargestPid)
        sys(__NR_kill, -static_cast<long>(header.id), header.value);
      tell(Kind::group_signaled, header.id, header.value);
      break;
    case Kind::signal:
      signal_process(init, header.id, header.value);
      tell(Kind::signaled, header.id, header.value);
      break;
    case Kind::resume:
      if (header.value != 0) give_terminal(init, header.id);
      // Once each: a second SIGCONT would undo a Ctrl-Z that came between the two.
      if (init.own_pid_namespace)
        sys(__NR_kill, -1, SIGCONT);
      else
        signal_process(init, header.id, SIGCONT);
      break;
    default:
      end(init);
  }
}

// Sockets of this network namespace, which the broker outside cannot make. Sending is one
// of the calls that wait for the broker, and it lets this one pass.
void hand_out_sockets(const Init& init) {
  SocketRequest request{};
  if (sys(__NR_read, kSocketsFd, &request, sizeof request) != sizeof request) end(init);
  struct {
    KernelCmsg header;
    int fds[kSocketsAtOnce];
  } control{};
  int count = 0;
  for (; count < kSocketsAtOnce; ++count) {
    long fd = sys(__NR_socket, request.family, request.type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (is_failure(fd)) break;
    control.fds[count] = static_cast<int>(fd);
  }
  char byte = 0;
  KernelIovec part{&byte, 1};
  KernelMsghdr message{};
  message.iov = &part;
  message.iov_count = 1;
  if (count > 0) {
    control.header = {sizeof control.header + sizeof(int) * static_cast<std::size_t>(count),
                      SOL_SOCKET, SCM_RIGHTS};
    message.control = &control;
    message.control_size = control.header.size;
  }
  sys(__NR_sendmsg, kSocketsFd, &message, MSG_NOSIGNAL);
  for (int i = 0; i < count; ++i) sys(__NR_close, control.fds[i]);
}

void reap(Init& init) {
  for (;;) {
    int status = 0;
    long pid = sys(__NR_wait4, -1, &status, WNOHANG | WUNTRACED, nullptr);
    if (pid <= 0) return;
    for (Process& process : init.processes) {
      if (process.pid != pid) continue;
      if ((status & 0xff) == 0x7f) {  // WIFSTOPPED
        tell(Kind::stopped, process.id, static_cast<std::uint32_t>(status >> 8));
        break;
      }
      process.pid = 0;
      tell(Kind::exited, process.id, static_cast<std::uint32_t>(status));
      if (process.leads) end(init);
      break;
    }
  }
}

// What the caller ignores stays ignored across exec. With SIGCHLD nothing would be left
// to wait for; the others are ignored by many servers and by Python, and programs inside
// count on them (`yes | head`, the limits). SIGHUP and the like stay: that is nohup.
void default_signals() {
  const long action[4] = {};  // handler, flags, restorer, mask: SIG_DFL is 0
  constexpr int kSignals[] = {SIGCHLD, SIGPIPE, SIGXFSZ, SIGXCPU};
  for (int signal : kSignals) sys(__NR_rt_sigaction, signal, action, nullptr, 8);
}

Init the_init;  // zeroed memory without a C library's memset

}  // namespace

// The entry point: hand the initial stack (argc, argv, ...) to init_main.
#if defined(__x86_64__)
asm(".globl _start\n_start:\n\txor %ebp, %ebp\n\tmov %rsp, %rdi\n\tand $-16, %rsp\n\tcall "
    "init_main\n");
#elif defined(__aarch64__)
asm(".globl _start\n_start:\n\tmov x29, xzr\n\tmov x0, sp\n\tbl init_main\n");
#endif

// `arguments[1]` is "1" in a pid namespace of the jar's own, `arguments[2]` with a broker.
extern "C" [[noreturn]] void init_main(long* stack) {
  char** arguments = reinterpret_cast<char**>(stack + 1);
  Init& init = the_init;
  init.own_pid_namespace = stack[0] > 1 && arguments[1][0] == '1';
  init.has_broker = stack[0] > 2 && arguments[2][0] == '1';
  // The guest has our uid: it must not read or write this process's memory.
  sys(__NR_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
  // They had to survive the exec that made this init; no guest may hold them.
  if (is_failure(sys(__NR_close_range, kControlFd, ~0U, CLOSE_RANGE_CLOEXEC))) exit(125);
  if (!init.own_pid_namespace) sys(__NR_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  sys(__NR_rt_sigprocmask, SIG_SETMASK, &kAllSignals, nullptr, 8);
  default_signals();
  const std::uint64_t child_signal = 1ULL << (SIGCHLD - 1);
  long signals = sys(__NR_signalfd4, -1, &child_signal, 8, SFD_CLOEXEC);
  if (is_failure(signals)) exit(125);
  tell(Kind::ready, 0, 0);

  for (;;) {
    KernelPollfd ready[4] = {{kControlFd, POLLIN, 0},
                             {static_cast<int>(signals), POLLIN, 0},
                             {kSupervisorFd, POLLIN, 0},
                             {init.has_broker ? kSocketsFd : -1, POLLIN, 0}};
    sys(__NR_ppoll, ready, 4, nullptr, nullptr, 8);
    if (ready[2].revents != 0) end(init);
    // Before the dead are forgotten: a signal that was sent while a process lived is for its
    // group, which lives on.
    if (ready[0].revents != 0) handle_request(init);
    if (ready[1].revents != 0) {
      char drained[sizeof(signalfd_siginfo)];
      sys(__NR_read, signals, drained, sizeof drained);
      reap(init);
    }
    if (ready[3].revents != 0) hand_out_sockets(init);
  }
}
