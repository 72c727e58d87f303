// Forks of a warm interpreter in the jars of sessions: that they are what a process spawned
// there is, and that neither they nor a hostile guest reaches the interpreter or another
// session. The worker here runs what it is sent and answers with what it left in `answer`.
#include "session/warm.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "base/file.h"
#include "belljar/belljar.h"
#include "support/folder.h"
#include "support/leavings.h"

namespace belljar::session {
namespace {

using namespace std::chrono_literals;
using belljar::testing::Folder;
using launcher::Started;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kPatienceMs = 15'000;

constexpr const char* kWorker = R"(
import ctypes, os, random, resource, signal, socket, sys, threading, time

def prepare(preload):
    with open("/tmp/left-by-the-interpreter", "w") as file:
        file.write("its own")
    for name in preload:
        if name == "a thread":
            threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        else:
            __import__(name)

def after_fork():
    pass

def main(control_fd):
    control = socket.socket(fileno=control_fd)
    names = dict(globals())
    while True:
        size = control.recv(4, socket.MSG_WAITALL)
        if len(size) < 4:
            os._exit(0)
        code = control.recv(int.from_bytes(size, "little"), socket.MSG_WAITALL).decode()
        names["answer"] = ""
        try:
            exec(code, names)
        except BaseException as error:
            names["answer"] = type(error).__name__ + ": " + str(error)
        answer = str(names["answer"]).encode()
        control.sendall(len(answer).to_bytes(4, "little") + answer)
)";

bool readable(int fd, int timeout_ms = kPatienceMs) {
  pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&ready, 1, timeout_ms) == 1;
}

bool becomes(const std::function<bool()>& condition) {
  for (int i = 0; i < kPatienceMs / 5; ++i) {
    if (condition()) return true;
    ::usleep(5000);
  }
  return false;
}

// A worker and our end of its control socket.
class Worker {
 public:
  Worker(Forked worker, Fd control) : forked(std::move(worker)), control_(std::move(control)) {}

  void send(const std::string& code) const {
    const auto size = static_cast<std::uint32_t>(code.size());
    std::string bytes(reinterpret_cast<const char*>(&size), sizeof size);
    bytes += code;
    EXPECT_EQ(::send(control_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), std::ssize(bytes));
  }
  std::string receive() const {
    std::uint32_t size = 0;
    if (!take(&size, sizeof size)) return "(no answer)";
    std::string answer(size, '\0');
    return take(answer.data(), size) ? answer : "(half an answer)";
  }
  std::string ask(const std::string& code) const {
    send(code);
    return receive();
  }
  // The wait status, or -1.
  int status() const {
    if (!readable(forked.status_fd.get())) return -1;
    Result<std::optional<int>> ended = forked.ended();
    return ended && *ended ? **ended : -1;
  }
  bool has_ended() const { return readable(forked.pidfd.get()); }

  Forked forked;

 private:
  bool take(void* into, std::size_t size) const {
    auto* at = static_cast<char*>(into);
    while (size > 0) {
      if (!readable(control_.get())) return false;
      const ssize_t n = ::recv(control_.get(), at, size, 0);
      if (n <= 0) return false;
      at += n;
      size -= static_cast<std::size_t>(n);
    }
    return true;
  }
  Fd control_;
};

class Warmed : public ::testing::Test {
 protected:
  Warmed() { policy.files.workdir = folder.path(); }

  static Policy named(const char* name) { return profile(name).value(); }
  static Status accept(const Plan&) { return {}; }

  Result<Warm> try_warm(std::vector<std::string> preload = {}) {
    return Warm::start(policy, caller, host, "/usr/bin/python3", std::move(preload), kWorker);
  }
  Warm must_warm() {
    Result<Warm> warm = try_warm();
    if (!warm) throw std::runtime_error(warm.error().message());
    return std::move(*warm);
  }
  Started must_open(const Warm& warm) { return must_open(warm, policy); }
  Started must_open(const Warm& warm, const Policy& of) {
    Result<Started> started = launcher::start(of, caller, host, nullptr, accept, {}, warm.origin());
    if (!started) throw std::runtime_error(started.error().message());
    return std::move(*started);
  }
  Result<Worker> try_fork(Warm& warm, Started& session, int stdin_fd = -1,
                          const std::vector<std::string>& environment = {}) {
    int fds[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
      return fail("socketpair", errno);
    Fd ours(fds[0]), theirs(fds[1]);
    const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    Forked forked = TRY(warm.fork_into(
        session.jar, session.plan, theirs.get(),
        {stdin_fd < 0 ? null.get() : stdin_fd, null.get(), null.get()}, environment));
    return Worker(std::move(forked), std::move(ours));
  }
  Worker must_fork(Warm& warm, Started& session, int stdin_fd = -1,
                   const std::vector<std::string>& environment = {}) {
    Result<Worker> worker = try_fork(warm, session, stdin_fd, environment);
    if (!worker) throw std::runtime_error(worker.error().message());
    return std::move(*worker);
  }
  // What a command that init spawns in the session's jar prints.
  static std::string spawned(Started& session, std::vector<std::string> arguments) {
    Pipe out = make_pipe().value();
    const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    EXPECT_TRUE(session.jar.spawn({.arguments = std::move(arguments),
                                   .stdio_fds = {null.get(), out.write.get(), null.get()},
                                   .leads = false}));
    out.write.reset();
    std::string text;
    char bytes[4096];
    while (readable(out.read.get())) {
      const ssize_t n = ::read(out.read.get(), bytes, sizeof bytes);
      if (n <= 0) break;
      text.append(bytes, static_cast<std::size_t>(n));
    }
    return text;
  }

  Folder folder;
  Policy policy = named("restricted");
  Caller caller = this_process();
  Host host = assume_host();
};

std::vector<pid_t> children_of(pid_t pid) {
  const std::string number = std::to_string(pid);
  std::istringstream text(
      read_text("/proc/" + number + "/task/" + number + "/children").value_or(""));
  return {std::istream_iterator<pid_t>(text), {}};
}

pid_t interpreter_of(const Warm& warm) {
  const std::vector<pid_t> children = children_of(warm.jar().init_pid());
  return children.size() == 1 ? children[0] : -1;
}

std::string link_of(pid_t pid, const std::string& name) {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/ns/" + name, ignored);
}

std::string line_of(const std::string& text, const std::string& name) {
  const std::size_t at = text.find("\n" + name + ":\t");
  if (at == text.npos) return "(no " + name + ")";
  return text.substr(at + 1, text.find('\n', at + 1) - at - 1);
}

std::ptrdiff_t descriptors_of(pid_t pid) {
  std::error_code ignored;
  std::filesystem::directory_iterator all("/proc/" + std::to_string(pid) + "/fd", ignored);
  return std::distance(begin(all), end(all));
}

// ---- what a fork is ---------------------------------------------------------------

TEST_F(Warmed, a_fork_answers_from_its_jar) {
  Warm warm = must_warm();
  Started session = must_open(warm);
  const Worker worker = must_fork(warm, session);
  EXPECT_EQ(worker.ask("answer = 6 * 7"), "42");
  EXPECT_EQ(worker.ask("answer = os.getcwd()"), session.plan.layout.workdir);
  EXPECT_EQ(worker.ask("open('made', 'w').write('by the fork')"), "");
  EXPECT_EQ(folder.read("made"), "by the fork");
}

TEST_F(Warmed, a_fork_is_in_all_namespaces_of_its_jar_and_in_none_of_the_interpreters) {
  Warm warm = must_warm();
  Started session = must_open(warm);
  const Worker worker = must_fork(warm, session);
  for (const char* name : {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"}) {
    const std::string own = link_of(worker.forked.pid, name);
    EXPECT_THAT(own, HasSubstr(name));
    EXPECT_EQ(own, link_of(session.jar.init_pid(), name));
    EXPECT_NE(own, link_of(interpreter_of(warm), name));
  }
}

TEST_F(Warmed, a_fork_has_the_rights_of_a_spawned_process) {
  Warm warm = must_warm();
  Started session = must_open(warm);
  const std::string spawned_status = spawned(session, {"cat", "/proc/self/status"});
  const Worker worker = must_fork(warm, session);
  const std::string status = worker.ask("answer = open('/proc/self/status').read()");
  for (const char* name :
       {"Uid", "Gid", "Groups", "NoNewPrivs", "Seccomp", "CapInh", "CapPrm", "CapEff", "CapAmb"})
    EXPECT_EQ(line_of(status, name), line_of(spawned_status, name));
  EXPECT_EQ(line_of(status, "NoNewPrivs"), "NoNewPrivs:\t1");
  EXPECT_EQ(line_of(status, "Seccomp"), "Seccomp:\t2");
  EXPECT_EQ(line_of(status, "Seccomp_filters"), "Seccomp_filters:\t2");
  EXPECT_EQ(line_of(status, "CapEff"), "CapEff:\t0000000000000000");
  EXPECT_EQ(line_of(status, "CapPrm"), "CapPrm:\t0000000000000000");
  EXPECT_EQ(line_of(status, "CapBnd"), "CapBnd:\t0000000000000000");
}

TEST_F(Warmed, a_fork_has_the_limits_of_a_spawned_process) {
  policy.limits.open_fds = 77;
  policy.limits.procs = 33;
  Warm warm = must_warm();
  Started session = must_open(warm);
  const std::string limits = spawned(session, {"cat", "/proc/self/limits"});
  EXPECT_THAT(limits, HasSubstr("Max open files            77 "));
  EXPECT_EQ(must_fork(warm, session).ask("answer = open('/proc/self/limits').read()"), limits);
}

TEST_F(Warmed, a_fork_has_the_variables_of_a_spawned_process) {
  policy.environment.set = {{"SESSION", "one"}};
  Warm warm = must_warm();
  Started session = must_open(warm);
  const std::string variables = spawned(session, {"env"});
  EXPECT_THAT(variables, HasSubstr("SESSION=one"));
  const Worker worker = must_fork(warm, session, -1, {"MORE=this"});
  EXPECT_EQ(worker.ask("answer = ''.join(f'{k}={v}\\n' for k, v in os.environ.items())"),
            variables + "MORE=this\n");
  EXPECT_EQ(worker.ask("import subprocess; answer = subprocess.getoutput('echo $SESSION $MORE')"),
            "one this");
}

TEST_F(Warmed, a_fork_has_four_descriptors) {
  Warm warm = must_warm();
  Started session = must_open(warm);
  const Worker first = must_fork(warm, session);  // its sockets are the interpreter's now
  const Worker worker = must_fork(warm, session);
  EXPECT_EQ(worker.ask("answer = sorted(map(int, os.listdir('/proc/self/fd')))"),
            "[0, 1, 2, 3, 4]");  // 4 is the listing
  EXPECT_EQ(worker.ask("answer = os.get_inheritable(3)"), "False");
}

TEST_F(Warmed, a_fork_leads_its_group_and_session_and_its_orphans_go_to_init) {
  Warm warm = must_warm();
  Started session = must_open(warm);
  const Worker worker = must_fork(warm, session);
  EXPECT_EQ(worker.ask("answer = os.getpid() == os.getpgid(0) == os.getsid(0)"), "True");
  EXPECT_EQ(worker.ask("answer = os.getpid()"), std::to_string(worker.forked.pid_inside));
  EXPECT_EQ(worker.ask(R"(
r, w = os.pipe()
if os.fork() == 0:
    middle = os.getpid()
    if os.fork() == 0:
        while os.getppid() == middle: time.sleep(0.001)
        os.write(w, str(os.getppid()).encode())
    os._exit(0)
os.wait()
answer = os.read(r, 9).decode()
)"),
            "1");
}

TEST_F(Warmed, every_profile_that_can_be_joined_is) {
  for (const char* name :
       {"open", "developer", "restricted", "public-bot", "trusted-maintenance"}) {
    policy = named(name);
    policy.files.workdir = folder.path();
    Warm warm = must_warm();
    Started session = must_open(warm);
    EXPECT_EQ(must_fork(warm, session).ask("answer = os.getcwd()"), session.plan.layout.workdir)
        << name;
  }
}

TEST_F(Warmed, a_fork_can_do_what_sessions_do) {
  Warm warm = must_warm();
  Started session = must_open(warm);
  const Worker worker = must_fork(warm, session);
  EXPECT_EQ(worker.ask("import subprocess; answer = subprocess.run(['sh', '-c', 'echo $((2+3))'], "
                       "capture_output=True, text=True).stdout"),
            "5\n");
  EXPECT_EQ(worker.ask("t = threading.Thread(target=lambda: names.append(1)); names = []; "
                       "t.start(); t.join(); answer = names"),
            "[1]");
  EXPECT_EQ(worker.ask("import tempfile; answer = tempfile.mkstemp()[1][:5]"), "/tmp/");
  EXPECT_EQ(worker.ask("import multiprocessing as mp\n"
                       "with mp.get_context('fork').Pool(2) as pool: answer = pool.map(abs, [-1])"),
            "[1]");
  EXPECT_EQ(worker.ask("answer = open('/proc/self/environ', 'rb').read(1) != b''"), "True");
}

TEST_F(Warmed, forks_are_random_each_in_its_own_way) {
  Warm warm = must_warm();
  Started one = must_open(warm);
  Started two = must_open(warm);
  const std::string code = "answer = random.random()";
  EXPECT_NE(must_fork(warm, one).ask(code), must_fork(warm, two).ask(code));
}

// ---- layers -----------------------------------------------------------------------

// What the view does not decide: a file of the host's as standard input, opened once more.
constexpr const char* kReopen = "os.write(os.open('/proc/self/fd/0', os.O_RDWR), b'x')";

TEST_F(Warmed, landlock_is_in_force) {
  if (host.landlock.abi < 2) GTEST_SKIP() << "no Landlock here";
  Folder outside;
  outside.write("file", "as it was");
  ASSERT_EQ(::chmod((outside.path() + "/file").c_str(), 0666), 0);
  const Fd file(::open((outside.path() + "/file").c_str(), O_RDONLY | O_CLOEXEC));
  Warm warm = must_warm();
  Started session = must_open(warm);
  EXPECT_THAT(must_fork(warm, session, file.get()).ask(kReopen), HasSubstr("PermissionError"));
  EXPECT_EQ(outside.read("file"), "as it was");

  host.landlock.abi = 0;  // the control
  Started without = must_open(warm);
  EXPECT_EQ(must_fork(warm, without, file.get()).ask(kReopen), "");
  EXPECT_EQ(outside.read("file"), "xs it was");
}

TEST_F(Warmed, the_view_is_in_force) {
  Folder outside;
  outside.write("file", "a secret");
  ASSERT_EQ(::chmod(outside.path().c_str(), 0755), 0);
  Warm warm = must_warm();
  Started session = must_open(warm);
  const Worker worker = must_fork(warm, session);
  EXPECT_THAT(worker.ask("answer = open('" + outside.path() + "/file').read()"),
              HasSubstr("FileNotFoundError"));
  EXPECT_THAT(worker.ask("open('/usr/here', 'w')"), HasSubstr("Error"));
  EXPECT_THAT(worker.ask("open('/here', 'w')"), HasSubstr("Error"));
}

TEST_F(Warmed, seccomp_is_in_force) {
  Warm warm = must_warm();
  Started session = must_open(warm);
  const Worker worker = must_fork(warm, session);
  worker.ask("libc = ctypes.CDLL(None, use_errno=True)");
  for (const char* call :
       {"setns(0, 0)", "unshare(0)", "mount(0, 0, 0, 0, 0)", "ptrace(0, 0, 0, 0)"})
    EXPECT_EQ(worker.ask(std::string("answer = libc.") + call + ", ctypes.get_errno()"),
              "(-1, " + std::to_string(EPERM) + ")")
        << call;
}

TEST_F(Warmed, a_jar_without_network_has_none_for_a_fork) {
  policy = named("public-bot");
  policy.files.workdir = folder.path();
  Warm warm = must_warm();
  Started session = must_open(warm);
  const Worker worker = must_fork(warm, session);
  EXPECT_THAT(worker.ask("socket.socket(socket.AF_INET)"), HasSubstr("OSError"));
  EXPECT_EQ(worker.ask("answer = os.getcwd()"), "/workspace");
}

// A service of the host's, on a port of its own.
class Service {
 public:
  Service() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(socket_.get(), 16), 0);
    EXPECT_EQ(::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = std::to_string(ntohs(address.sin_port));
  }
  const std::string& port() const { return port_; }
  bool is_called() const {
    if (!readable(socket_.get(), 1000)) return false;
    return bool(Fd(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC)));
  }

 private:
  Fd socket_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  std::string port_;
};

TEST_F(Warmed, a_fork_reaches_the_hosts_that_its_jar_may_and_no_others) {
  const Service service;
  policy.network = Network::hosts;
  policy.hosts = {"localhost:" + service.port()};
  Warm warm = must_warm();
  Started session = must_open(warm);
  auto connect = [](const std::string& address, const std::string& port) {
    return "socket.create_connection((\"" + address + "\", " + port + "), 5).close()";
  };
  const std::string elsewhere = connect("192.0.2.1", "80");
  for (int i = 0; i < 3; ++i) {  // each has calls of its own
    const Worker worker = must_fork(warm, session);
    EXPECT_EQ(worker.ask(connect("127.0.0.1", service.port())), "");
    EXPECT_TRUE(service.is_called());
    EXPECT_THAT(worker.ask(elsewhere), HasSubstr("PermissionError"));
    EXPECT_THAT(worker.ask("import subprocess; answer = subprocess.run([sys.executable, '-c', "
                           "'import socket; " +
                           elsewhere + "'], capture_output=True).stderr"),
                HasSubstr("PermissionError"));
    EXPECT_EQ(worker.ask("answer = sorted(map(int, os.listdir('/proc/self/fd')))"),
              "[0, 1, 2, 3, 4]");
  }
  ASSERT_NE(session.jar.broker(), nullptr);
  EXPECT_EQ(session.jar.broker()->events().size(), 9U);
}

TEST_F(Warmed, a_memory_limit_holds_for_a_fork) {
  policy.limits.memory_mb = 300;
  Warm warm = must_warm();
  Started session = must_open(warm);
  EXPECT_THAT(must_fork(warm, session).ask("bytearray(400 << 20)"), HasSubstr("MemoryError"));
}

TEST_F(Warmed, forks_and_spawned_processes_can_signal_one_another) {
  Warm warm = must_warm();
  Started session = must_open(warm);
  const Worker worker = must_fork(warm, session);
  Pipe out = make_pipe().value();
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(session.jar.spawn({.arguments = {"sh", "-c", "echo $$; exec sleep 60"},
                                 .stdio_fds = {null.get(), out.write.get(), null.get()},
                                 .leads = false}));
  out.write.reset();
  char number[16] = {};
  ASSERT_GT(::read(out.read.get(), number, sizeof number - 1), 0);
  EXPECT_EQ(worker.ask("os.kill(int('''" + std::string(number) + "'''), 9)"), "");
  EXPECT_TRUE(readable(out.read.get()));  // the sleeper's end
  worker.ask("signal.signal(signal.SIGUSR1, lambda *_: seen.append(1)); seen = []");
  spawned(session, {"kill", "-USR1", std::to_string(worker.forked.pid_inside)});
  EXPECT_EQ(worker.ask("answer = seen"), "[1]");
}

TEST_F(Warmed, init_signals_a_forks_group) {
  Warm warm = must_warm();
  Started session = must_open(warm);
  const Worker worker = must_fork(warm, session);
  EXPECT_THAT(worker.ask("answer = signal.getsignal(signal.SIGINT)"),
              HasSubstr("default_int_handler"));
  worker.ask("signal.signal(signal.SIGINT, lambda *_: seen.append(1)); seen = []");
  ASSERT_TRUE(session.jar.signal_group(worker.forked.pid_inside, SIGINT));
  EXPECT_EQ(worker.ask("while not seen: time.sleep(0.01)\nanswer = seen"), "[1]");
  ASSERT_TRUE(session.jar.signal_group(1, SIGKILL));  // nobody's
  EXPECT_EQ(worker.ask("answer = 1"), "1");
  ASSERT_TRUE(session.jar.signal_group(worker.forked.pid_inside, SIGKILL));
  EXPECT_EQ(worker.status(), SIGKILL);
}

// ---- ends -------------------------------------------------------------------------

TEST_F(Warmed, how_a_fork_ended_is_told) {
  Warm warm = must_warm();
  Started session = must_open(warm);
  for (const auto& [code, status] : {std::pair{"os._exit(3)", 3 << 8},
                                     {"sys.exit(4)", -1},
                                     {"os.kill(os.getpid(), signal.SIGSEGV)", SIGSEGV},
                                     {"os.kill(os.getpid(), signal.SIGKILL)", SIGKILL}}) {
    const Worker worker = must_fork(warm, session);
    Result<std::optional<int>> early = worker.forked.ended();
    EXPECT_TRUE(early && !*early);
    worker.send(code);
    if (status < 0) continue;  // SystemExit is an answer; its end comes with its socket's
    EXPECT_EQ(worker.status(), status) << code;
    EXPECT_TRUE(worker.has_ended());
  }
}

TEST_F(Warmed, the_end_of_the_session_ends_its_forks) {
  Warm warm = must_warm();
  std::optional<Started> session = must_open(warm);
  const Worker one = must_fork(warm, *session);
  const Worker two = must_fork(warm, *session);
  session.reset();  // waits for all that is in it
  EXPECT_TRUE(readable(one.forked.pidfd.get(), 0));
  EXPECT_EQ(one.status(), SIGKILL);
  EXPECT_EQ(two.status(), SIGKILL);
  EXPECT_TRUE(warm.alive());
  EXPECT_EQ(children_of(interpreter_of(warm)).size(), 0U);
}

TEST_F(Warmed, forks_survive_the_interpreter_and_it_can_be_revived) {
  Warm warm = must_warm();
  Started session = must_open(warm);
  const Worker worker = must_fork(warm, session);
  worker.ask("kept = 'what it knew'");
  ASSERT_EQ(::kill(interpreter_of(warm), SIGKILL), 0);
  EXPECT_TRUE(readable(warm.alive_fd()));
  EXPECT_FALSE(warm.alive());
  EXPECT_EQ(worker.ask("answer = kept"), "what it knew");
  EXPECT_TRUE(readable(worker.forked.status_fd.get()));
  EXPECT_FALSE(worker.forked.ended());  // an error: nobody will know
  EXPECT_FALSE(try_fork(warm, session));

  ASSERT_TRUE(warm.revive());
  EXPECT_EQ(must_fork(warm, session).ask("answer = 1"), "1");
  worker.send("os._exit(0)");
  EXPECT_TRUE(worker.has_ended());
}

TEST_F(Warmed, sessions_survive_the_end_of_the_object_and_nothing_stays_after_them) {
  {
    Warm warm = must_warm();
  }  // the init program is opened once and kept
  const auto before = belljar::testing::open_descriptors();
  {
    std::optional<Warm> warm = must_warm();
    Started one = must_open(*warm);
    Started two = must_open(*warm);
    const Worker worker = must_fork(*warm, one);
    warm.reset();
    EXPECT_TRUE(readable(worker.forked.status_fd.get()));
    EXPECT_EQ(worker.ask("answer = 6 * 7"), "42");
    two.jar.end();
    EXPECT_EQ(worker.ask("answer = 6 * 7"), "42");
  }
  EXPECT_EQ(belljar::testing::open_descriptors(), before);
  EXPECT_FALSE(belljar::testing::has_children());
}

TEST_F(Warmed, the_end_of_the_init_above_is_seen_in_any_order) {
  std::optional<Warm> warm = must_warm();
  std::optional<Started> session = must_open(*warm);
  ASSERT_EQ(::kill(warm->jar().init_pid(), SIGKILL), 0);
  EXPECT_TRUE(readable(session->jar.init_pidfd()));
  warm.reset();
  session.reset();
  EXPECT_FALSE(belljar::testing::has_children());
}

TEST_F(Warmed, jars_end_with_the_init_above_them) {
  Warm warm = must_warm();
  Started session = must_open(warm);
  const Worker worker = must_fork(warm, session);
  ASSERT_EQ(::kill(warm.jar().init_pid(), SIGKILL), 0);
  EXPECT_TRUE(worker.has_ended());
  EXPECT_TRUE(readable(session.jar.init_pidfd()));
  EXPECT_TRUE(session.jar.has_ended());
  EXPECT_FALSE(warm.revive());
}

TEST_F(Warmed, a_fork_that_is_given_up_ends) {
  Warm warm = must_warm();
  Started session = must_open(warm);
  int fds[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
  const Fd ours(fds[0]), theirs(fds[1]);
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  for (int i = 0; i < 20; ++i) {
    Result<Joining> joining = warm.begin_fork(session.jar, session.plan, theirs.get(),
                                              {null.get(), null.get(), null.get()});
    ASSERT_TRUE(joining);
    ::usleep(static_cast<useconds_t>(i * 200));
    if (i % 3 != 0) continue;
    Result<std::optional<Forked>> there = joining->step();
    ASSERT_TRUE(there);
    if (*there) ::kill((*there)->pid, SIGKILL);  // it was not given up
  }
  EXPECT_TRUE(becomes([&] { return children_of(interpreter_of(warm)).empty(); }));
  EXPECT_EQ(must_fork(warm, session).ask("answer = 1"), "1");
}

TEST_F(Warmed, two_hundred_forks_leave_nothing) {
  Warm warm = must_warm();
  Started session = must_open(warm);
  const pid_t interpreter = interpreter_of(warm);
  auto resident = [&] {
    return std::stol(
        line_of(read_text("/proc/" + std::to_string(interpreter) + "/status").value_or(""), "VmRSS")
            .substr(6));
  };
  auto fork_and_end = [&] {
    const Worker worker = must_fork(warm, session);
    worker.send("os._exit(7)");
    ASSERT_EQ(worker.status(), 7 << 8);
  };
  for (int i = 0; i < 10; ++i) fork_and_end();
  const auto own_before = belljar::testing::open_descriptors();
  constexpr std::ptrdiff_t kWithoutForks = 4;  // 0, 1, 2, its control socket
  EXPECT_TRUE(becomes([&] { return descriptors_of(interpreter) == kWithoutForks; }));
  const long resident_before = resident();
  for (int i = 0; i < 200; ++i) fork_and_end();
  EXPECT_EQ(belljar::testing::open_descriptors(), own_before);
  EXPECT_TRUE(becomes([&] { return descriptors_of(interpreter) == kWithoutForks; }));
  EXPECT_LT(resident() - resident_before, 512);
  EXPECT_TRUE(children_of(interpreter).empty());
  // Init and the shell itself.
  EXPECT_EQ(spawned(session, {"sh", "-c", "set -- /proc/[0-9]*; echo $#"}), "2\n");
}

TEST_F(Warmed, nothing_of_it_is_left) {
  {
    Warm warm = must_warm();
  }  // the init program is opened once and kept
  const auto before = belljar::testing::open_descriptors();
  {
    Warm warm = must_warm();
    Started session = must_open(warm);
    const Worker worker = must_fork(warm, session);
    EXPECT_EQ(worker.ask("answer = 1"), "1");
  }
  EXPECT_EQ(belljar::testing::open_descriptors(), before);
  EXPECT_FALSE(belljar::testing::has_children());
}

// ---- hostile forks ----------------------------------------------------------------

TEST_F(Warmed, a_fork_sees_and_signals_nobody_outside_its_jar) {
  Warm warm = must_warm();
  Started session = must_open(warm);
  Started other = must_open(warm);
  const Worker worker = must_fork(warm, session);
  const Worker neighbour = must_fork(warm, other);
  EXPECT_EQ(worker.ask("answer = sorted(int(n) for n in os.listdir('/proc') if n.isdigit())"),
            "[1, " + std::to_string(worker.forked.pid_inside) + "]");
  worker.ask(R"(
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for pid in list(range(2, 70000)) + [-1]:
    if pid != os.getpid():
        try: os.kill(pid, signal.SIGTERM)
        except OSError: pass
)");
  EXPECT_TRUE(warm.alive());
  EXPECT_EQ(neighbour.ask("answer = 1"), "1");
  EXPECT_EQ(must_fork(warm, other).ask("answer = 2"), "2");
}

TEST_F(Warmed, a_fork_finds_no_way_back) {
  Warm warm = must_warm();
  Started session = must_open(warm);
  const Worker worker = must_fork(warm, session);
  EXPECT_EQ(worker.ask("answer = os.path.exists('/tmp/left-by-the-interpreter')"), "False");
  // By what is still mapped: a file, and nothing around it.
  EXPECT_THAT(worker.ask("os.listdir('/proc/self/exe/..')"), HasSubstr("NotADirectoryError"));
  EXPECT_THAT(
      worker.ask("os.open('/proc/self/map_files', os.O_RDONLY); "
                 "os.stat('/proc/self/map_files/' + os.listdir('/proc/self/map_files')[0])"),
      HasSubstr("PermissionError"));
  // By every descriptor it could have, whatever it is of.
  EXPECT_EQ(worker.ask(R"(
libc = ctypes.CDLL(None, use_errno=True)
answer = [fd for fd in range(1024) if libc.setns(fd, 0) == 0]
)"),
            "[]");
  EXPECT_EQ(worker.ask("answer = os.path.samestat(os.stat('/'), os.stat('/proc/1/root'))"
                       " if os.access('/proc/1/root', os.F_OK) else 'unreadable'"),
            "unreadable");
}

TEST_F(Warmed, a_fork_that_closes_everything_harms_only_itself) {
  Warm warm = must_warm();
  Started session = must_open(warm);
  const Worker worker = must_fork(warm, session);
  worker.send("os.closerange(0, 4096); os._exit(0)");
  EXPECT_TRUE(worker.has_ended());
  EXPECT_EQ(worker.status(), 0);
  EXPECT_TRUE(warm.alive());
  EXPECT_EQ(must_fork(warm, session).ask("answer = 1"), "1");
}

TEST_F(Warmed, a_guest_in_the_jar_cannot_stop_another_fork_from_being_judged) {
  Warm warm = must_warm();
  Started session = must_open(warm);
  const Worker hostile = must_fork(warm, session);
  // Stops and kills all it sees, again and again, while others join.
  hostile.ask(R"(
def hunt():
    me = os.getpid()
    while True:
        for name in os.listdir('/proc'):
            if name.isdigit() and int(name) not in (1, me):
                try: os.kill(int(name), signal.SIGKILL)
                except OSError: pass
threading.Thread(target=hunt, daemon=True).start()
)");
  int joined = 0;
  for (int i = 0; i < 20; ++i) {
    Result<Worker> worker = try_fork(warm, session);
    if (worker) {
      ++joined;
      EXPECT_EQ(worker->status(), SIGKILL);
    }
  }
  EXPECT_TRUE(warm.alive());
  Started other = must_open(warm);
  EXPECT_EQ(must_fork(warm, other).ask("answer = 1"), "1");
}

// Looks for the reverse of what it is told in all of its memory, so that what it is told
// does not count.
constexpr const char* kSearch = R"(
def search(reversed_text):
    memory = open('/proc/self/mem', 'rb', 0)
    for line in open('/proc/self/maps'):
        range_, rights = line.split()[:2]
        begin, end = (int(n, 16) for n in range_.split('-'))
        if rights[0] != 'r' or 'vsyscall' in line or 'vvar' in line: continue
        memory.seek(begin)
        try: data = memory.read(end - begin)
        except OSError: continue
        if reversed_text in data[::-1]: return line
    return 'nowhere'
)";

TEST_F(Warmed, a_fork_has_no_memory_of_another_session) {
  Warm warm = must_warm();
  Started one = must_open(warm);
  const std::string secret = "k7Qd-session-one-" + std::to_string(::getpid());
  const std::string reversed(secret.rbegin(), secret.rend());
  const Worker owner = must_fork(warm, one, -1, {"TOKEN=" + secret});
  owner.ask(kSearch);
  EXPECT_NE(owner.ask("answer = search(b'" + reversed + "')"), "nowhere");  // the control
  owner.ask("data = [os.environ['TOKEN'] + str(i) for i in range(10000)]");
  Started two = must_open(warm);
  const Worker other = must_fork(warm, two);
  other.ask(kSearch);
  EXPECT_EQ(other.ask("answer = search(b'" + reversed + "')"), "nowhere");
}

// ---- what cannot be joined ----------------------------------------------------------

std::string why_not(const auto& result) { return result ? "it was" : result.error().message(); }

TEST_F(Warmed, a_jar_that_was_not_made_for_it_is_not_joined) {
  Warm warm = must_warm();
  Result<Started> session = launcher::start(policy, caller, host, nullptr, accept);
  ASSERT_TRUE(session);
  EXPECT_THAT(why_not(try_fork(warm, *session)), HasSubstr("not made to be joined"));
}

TEST_F(Warmed, a_jar_with_another_view_or_network_is_not_joined) {
  Warm warm = must_warm();
  Policy other = policy;
  other.files.reads = Reads::runtime;
  Started narrow = must_open(warm, other);
  EXPECT_THAT(why_not(try_fork(warm, narrow)), HasSubstr("other files"));
  other = policy;
  other.files.grants.push_back({"/etc/ssl", Access::hide, "test"});
  Started hiding = must_open(warm, other);
  EXPECT_THAT(why_not(try_fork(warm, hiding)), HasSubstr("other files"));
  other = policy;
  other.network = Network::full;
  Started open = must_open(warm, other);
  EXPECT_THAT(why_not(try_fork(warm, open)), HasSubstr("network"));
}

TEST_F(Warmed, an_ended_jar_is_not_joined) {
  Warm warm = must_warm();
  Started session = must_open(warm);
  session.jar.end();
  EXPECT_THAT(why_not(try_fork(warm, session)), HasSubstr("ended"));
  EXPECT_TRUE(warm.alive());
}

TEST_F(Warmed, what_keeps_an_interpreter_from_being_ready_is_said) {
  EXPECT_THAT(why_not(try_warm({"no_such_module"})), HasSubstr("No module named 'no_such_module'"));
  EXPECT_THAT(why_not(try_warm({"a thread"})), HasSubstr("started a thread"));
  EXPECT_THAT(why_not(Warm::start(policy, caller, host, "/usr/bin/no-python", {}, kWorker)),
              HasSubstr("No such file"));
  EXPECT_THAT(why_not(Warm::start(policy, caller, host, "/bin/false", {}, kWorker)),
              HasSubstr("ended"));
  host.identity.user_namespaces = false;
  host.measured = true;
  if (::geteuid() == 0) return;  // root needs none to make the others
  EXPECT_THAT(why_not(try_warm()), HasSubstr("namespaces"));
}

// ---- its own jar --------------------------------------------------------------------

TEST_F(Warmed, the_interpreters_own_jar_says_what_it_lacks) {
  Warm warm = must_warm();
  EXPECT_FALSE(warm.plan().landlock);
  std::string lost;
  for (const Loss& loss : warm.plan().losses) {
    EXPECT_FALSE(loss.broken);
    lost += loss.what + "\n";
  }
  EXPECT_THAT(lost, HasSubstr("no Landlock"));
  EXPECT_THAT(lost, HasSubstr("setns is allowed"));
  EXPECT_EQ(link_of(interpreter_of(warm), "net") == link_of(::getpid(), "net"), false);
  const std::string status =
      read_text("/proc/" + std::to_string(interpreter_of(warm)) + "/status").value_or("");
  EXPECT_EQ(line_of(status, "CapEff"), "CapEff:\t0000000000000000");
  EXPECT_EQ(line_of(status, "NoNewPrivs"), "NoNewPrivs:\t1");
  EXPECT_EQ(line_of(status, "Threads"), "Threads:\t1");
  EXPECT_THAT(line_of(status, "Uid"), Not(HasSubstr("\t0\t")));
  std::error_code ignored;
  EXPECT_FALSE(std::filesystem::exists(
      "/proc/" + std::to_string(interpreter_of(warm)) + "/root" + folder.path(), ignored));
}

TEST_F(Warmed, a_joinable_jar_leaves_to_namespaces_what_they_keep) {
  Warm warm = must_warm();
  Started session = must_open(warm);
  ASSERT_TRUE(session.plan.landlock);
  EXPECT_EQ(session.plan.landlock->scoped, 0U);
  for (const Kept& kept : session.plan.kept)
    if (kept.promise == Promise::processes) {
      EXPECT_EQ(kept.layers, std::vector<std::string>{"pid namespace"});
    }
}

}  // namespace
}  // namespace belljar::session
