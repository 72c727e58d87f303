// Forks of a warm interpreter in the jars of sessions: that they are what a process spawned
// there is, how they end and who outlives whom, and what cannot be joined.
#include "support/warm.h"

#include <sys/wait.h>

#include <csignal>
#include <set>

#include "session/sources.h"
#include "support/leavings.h"

namespace belljar::session {
namespace {

using belljar::testing::becomes;
using belljar::testing::children_of;
using belljar::testing::descriptors_of;
using belljar::testing::interpreter_of;
using belljar::testing::kPythonWorker;
using belljar::testing::line_of;
using belljar::testing::link_of;
using belljar::testing::readable;
using belljar::testing::Warmed;
using belljar::testing::Worker;
using launcher::Started;
using ::testing::HasSubstr;
using ::testing::Not;

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
  auto cgroup_of = [](pid_t pid) { return read_text("/proc/" + std::to_string(pid) + "/cgroup"); };
  EXPECT_EQ(cgroup_of(worker.forked.pid), cgroup_of(session.jar.init_pid()));
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
  EXPECT_EQ(worker.ask("answer = subprocess.run(['/proc/self/exe', '-c', 'print(5)'], "
                       "capture_output=True, text=True).stdout"),
            "5\n");
}

TEST_F(Warmed, forks_are_random_each_in_its_own_way) {
  Warm warm = must_warm();
  Started one = must_open(warm);
  Started two = must_open(warm);
  const std::string code = "answer = random.random()";
  EXPECT_NE(must_fork(warm, one).ask(code), must_fork(warm, two).ask(code));
}

TEST_F(Warmed, forks_have_what_was_imported_before_and_are_random_in_that_too) {
  Result<Warm> warm = try_warm({"numpy", "numpy.linalg"});
  if (!warm && warm.error().message().find("No module named") != std::string::npos)
    GTEST_SKIP() << "no numpy here";
  ASSERT_TRUE(warm) << warm.error().message();
  Started session = must_open(*warm);
  std::set<std::string> numbers;
  for (int i = 0; i < 3; ++i) {
    const Worker worker = must_fork(*warm, session);
    EXPECT_EQ(worker.ask("answer = 'numpy' in sys.modules"), "True");
    // Threads of OpenBLAS, if that is what it has, come back when they are used.
    EXPECT_EQ(worker.ask("import numpy; answer = numpy.linalg.inv(numpy.eye(300)).sum()"), "300.0");
    numbers.insert(worker.ask("answer = numpy.random.rand()"));
  }
  EXPECT_EQ(numbers.size(), 3U);
}

TEST_F(Warmed, the_worker_of_sessions_answers) {
  Result<Warm> warm =
      Warm::start(policy, caller, host, "/usr/bin/python3", {"decimal"},
                  std::string(worker_source()), std::string(worker_display_source()));
  ASSERT_TRUE(warm) << warm.error().message();
  Started session = must_open(*warm);
  const Worker worker = must_fork(*warm, session, kControlToo);
  worker.send(R"({"op": "setup"})");
  EXPECT_THAT(worker.receive(), HasSubstr(R"("op":"ready")"));
  worker.send(
      R"({"op": "execute", "id": 1, "code": "import sys\n'decimal' in sys.modules, 6 * 7"})");
  EXPECT_THAT(worker.receive(), HasSubstr("(True, 42)"));
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
    EXPECT_EQ(worker.ask("answer = 6 * 7"), "42");
    two.jar.end();
    EXPECT_EQ(worker.ask("answer = 6 * 7"), "42");
    worker.send("os._exit(5)");
    EXPECT_EQ(worker.status(), 5 << 8);  // the interpreter waits for its last fork
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
  EXPECT_THAT(why_not(Warm::start(policy, caller, host, "/usr/bin/no-python", {}, kPythonWorker)),
              HasSubstr("No such file"));
  EXPECT_THAT(why_not(Warm::start(policy, caller, host, "/bin/false", {}, kPythonWorker)),
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
