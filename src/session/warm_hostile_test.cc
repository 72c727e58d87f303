// A hostile fork reaches neither the warm interpreter nor another session.
#include "support/warm.h"

#include <csignal>

namespace belljar::session {
namespace {

using belljar::testing::Warmed;
using belljar::testing::Worker;
using launcher::Started;
using ::testing::HasSubstr;

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
  for (int i = 0; i < 20; ++i) {
    const Result<Worker> worker = try_fork(warm, session);
    if (worker) {
      EXPECT_EQ(worker->status(), SIGKILL);
    }
  }
  EXPECT_TRUE(warm.alive());
  Started other = must_open(warm);
  EXPECT_EQ(must_fork(warm, other).ask("answer = 1"), "1");
}

// The broker takes a descriptor out of a fork on its way, so for a moment others of the jar may be
// able to reach into it as well. Its files in /proc then belong to its user. Before that its
// capabilities keep them out.
TEST_F(Warmed, a_fork_can_be_reached_into_only_when_its_filters_are_there) {
  policy.network = Network::hosts;
  policy.hosts = {"localhost:1"};
  Warm warm = must_warm();
  Started session = must_open(warm);
  const Worker hostile = must_fork(warm, session);
  hostile.ask(R"(
def filters(pid): return int(open(f'/proc/{pid}/status').read().split('Seccomp_filters:')[1].split()[0])
def is_powerless(pid): return 'CapEff:\t0000000000000000' in open(f'/proc/{pid}/status').read()
seen = set()
def watch():
    me = os.getpid()
    while True:
        for name in os.listdir('/proc'):
            if not name.isdigit() or int(name) in (1, me): continue
            try:  # in this order: what it has no capabilities for, it will not get back
                if is_powerless(name) and os.stat(f'/proc/{name}/mem').st_uid == os.getuid():
                    seen.add(filters(name))
            except OSError: pass
threading.Thread(target=watch, daemon=True).start()
)");
  std::vector<Worker> others;
  for (int i = 0; i < 20; ++i) others.push_back(must_fork(warm, session));
  EXPECT_EQ(hostile.ask("answer = seen == {filters('self')} or seen"), "True");
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

}  // namespace
}  // namespace belljar::session
