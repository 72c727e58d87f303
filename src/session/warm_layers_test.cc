// Every layer of a session's jar holds for a fork of the warm interpreter that has joined it.
#include "support/warm.h"

#include <netinet/in.h>
#include <sys/stat.h>

namespace belljar::session {
namespace {

using belljar::testing::Folder;
using belljar::testing::readable;
using belljar::testing::Warmed;
using belljar::testing::Worker;
using launcher::Started;
using ::testing::HasSubstr;

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

TEST_F(Warmed, what_runs_beside_a_fork_cannot_look_into_it) {
  Warm warm = must_warm();
  Started session = must_open(warm);
  const Worker worker = must_fork(warm, session);
  const std::string proc = "/proc/" + std::to_string(worker.forked.pid_inside);
  // The control: of itself a process can read all of that.
  EXPECT_EQ(spawned(session, {"sh", "-c",
                              "cat /proc/self/maps >&2 && ls /proc/self/root/. >&2 && "
                              "echo all"}),
            "all\n");
  const std::string cat = "cat " + proc, list = "ls " + proc;
  for (const std::string& look :
       {cat + "/maps", cat + "/environ", list + "/root/.", list + "/cwd/."})
    EXPECT_EQ(spawned(session, {"sh", "-c", "ls -d " + proc + " && " + look + " || echo no"}),
              proc + "\nno\n")
        << look;
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

}  // namespace
}  // namespace belljar::session
