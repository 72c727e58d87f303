// belljar inside a program that has a life of its own: threads that launch, fork and
// reap, a supervisor that is killed, and nothing left behind.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <thread>

#include "base/fd.h"
#include "base/file.h"
#include "belljar/belljar.h"
#include "launcher/start.h"
#include "support/folder.h"
#include "support/leavings.h"

namespace belljar {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using testing::Folder;
using testing::has_children;
using testing::open_descriptors;

Policy policy_for(const Folder& folder) {
  Policy policy = profile("restricted").value();
  policy.files.workdir = folder.path();
  policy.limits.timeout = 20s;
  return policy;
}

Command sh(std::string script) { return {.arguments = {"sh", "-c", std::move(script)}}; }

// Processes anywhere on the host with this word on their command line.
int processes_with(const std::string& word) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::optional<std::string> line = read_text(entry.path() / "cmdline");  // else it is gone
    count += line && line->find(word) != line->npos ? 1 : 0;
  }
  return count;
}

bool becomes(int wanted, const std::string& word, std::chrono::milliseconds patience = 5s) {
  for (const auto end = steady_clock::now() + patience; steady_clock::now() < end;) {
    if (processes_with(word) == wanted) return true;
    std::this_thread::sleep_for(20ms);
  }
  return false;
}

std::string unique_seconds() {
  static std::atomic<int> count{0};
  return "60." + std::to_string(::getpid()) + "00" + std::to_string(count++);
}

// Forks all the time, and the forks live on for a while, holding every descriptor that
// was open at that moment.
class Forker {
 public:
  Forker()
      : thread_([this] {
          while (!stop_) {
            pid_t pid = ::fork();
            if (pid == 0) {
              ::usleep(300'000);
              ::_exit(0);
            }
            children_.push_back(pid);
            std::this_thread::sleep_for(2ms);
          }
        }) {}
  Forker(const Forker&) = delete;
  Forker& operator=(const Forker&) = delete;
  ~Forker() {
    stop_ = true;
    thread_.join();
    for (pid_t pid : children_) ::waitpid(pid, nullptr, 0);
  }

 private:
  std::atomic<bool> stop_{false};
  std::vector<pid_t> children_;
  std::thread thread_;
};

TEST(HostProgram, nothing_is_left_after_200_launches) {
  Folder folder;
  const Policy policy = policy_for(folder);
  ASSERT_TRUE(run(policy, sh("true")));  // the init program is opened once and kept
  const auto before = open_descriptors();
  for (int i = 0; i < 200; ++i) {
    Result<Outcome> outcome = run(policy, sh("sleep 60 & echo x"));
    ASSERT_TRUE(outcome) << outcome.error().message();
    ASSERT_EQ(outcome->out, "x\n");
  }
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_FALSE(has_children());
}

TEST(HostProgram, nothing_is_left_of_jars_pools_and_failures) {
  Folder folder;
  Policy policy = policy_for(folder);
  ASSERT_TRUE(run(policy, sh("true")));
  const auto before = open_descriptors();
  for (int i = 0; i < 10; ++i) {
    Pool pool(policy, 2);
    ASSERT_TRUE(pool.fill());
    Jar jar = pool.take().value();
    Process left = jar.spawn(sh("sleep 60")).value();
    ASSERT_EQ(jar.spawn(sh("exit 4")).value().wait()->exit_code(), 4);
    ASSERT_FALSE(jar.spawn({}));
  }
  policy.files.workdir = folder.path() + "/missing";
  ASSERT_FALSE(run(policy, sh("true")));
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_FALSE(has_children());
}

TEST(HostProgram, descriptors_of_a_jar_are_close_on_exec) {
  auto would_leak = [] {
    std::vector<int> fds;
    for (int fd = 0; fd < 200; ++fd)
      if (int flags = ::fcntl(fd, F_GETFD); flags >= 0 && (flags & FD_CLOEXEC) == 0)
        fds.push_back(fd);
    return fds;
  };
  const std::vector<int> before = would_leak();
  Folder folder;
  Jar jar = Jar::start(policy_for(folder)).value();
  Process process = jar.spawn(sh("sleep 60")).value();
  EXPECT_EQ(would_leak(), before);
}

TEST(HostProgram, a_launch_closes_no_descriptor_of_another_thread) {
  std::atomic<bool> stop{false};
  std::atomic<int> lost{0};
  Folder folder;
  {
    std::jthread opener([&] {
      while (!stop) {
        std::vector<Fd> mine;
        for (int i = 0; i < 20; ++i) mine.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
        std::this_thread::sleep_for(3ms);
        for (const Fd& fd : mine) lost += ::fcntl(fd.get(), F_GETFD) < 0 ? 1 : 0;
      }
    });
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(run(policy_for(folder), sh("true")));
    stop = true;
  }
  EXPECT_EQ(lost, 0);
}

TEST(HostProgram, threads_launch_at_once) {
  std::atomic<int> good{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&, i] {
        Folder folder;
        const Policy policy = policy_for(folder);
        for (int n = 0; n < 10; ++n) {
          const std::string text = std::to_string(i * 100 + n);
          Result<Outcome> outcome = run(policy, sh("echo " + text + " | tee file"));
          good += outcome && outcome->out == text + "\n" && folder.read("file") == text + "\n";
        }
      });
  }
  EXPECT_EQ(good, 40);
  EXPECT_FALSE(has_children());
}

TEST(HostProgram, other_threads_fork) {
  Folder folder;
  const Policy policy = policy_for(folder);
  Forker forker;
  for (int i = 0; i < 20; ++i) {
    Result<Outcome> outcome = run(policy, sh("echo x; (sleep 60) & exit 5"));
    ASSERT_TRUE(outcome) << outcome.error().message();
    EXPECT_EQ(outcome->exit_code(), 5);
    EXPECT_EQ(outcome->out, "x\n");
    EXPECT_LT(outcome->wall, 5s);
  }
}

TEST(HostProgram, the_end_of_init_is_seen_while_a_fork_holds_its_socket) {
  Folder folder;
  Host host = assume_host();
  for (int i = 0; i < 5; ++i) {
    Forker forker;
    launcher::Started started =
        launcher::start(policy_for(folder), this_process(), host, nullptr, [](const Plan&) {
          return Status();
        }).value();
    ::kill(started.jar.init_pid(), SIGKILL);
    pollfd ended{.fd = started.jar.init_pidfd(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&ended, 1, 5000), 1);
    EXPECT_TRUE(started.jar.has_ended());
    started.jar.end();
  }
}

TEST(HostProgram, a_thread_that_reaps_everything_takes_nothing_but_the_usage) {
  Folder folder;
  const Policy policy = policy_for(folder);
  std::atomic<bool> stop{false};
  std::jthread reaper([&] {
    while (!stop)
      if (::waitpid(-1, nullptr, WNOHANG | __WALL) <= 0) std::this_thread::sleep_for(100us);
  });
  for (int i = 0; i < 20; ++i) {
    Result<Outcome> outcome = run(policy, sh("exit 6"));
    ASSERT_TRUE(outcome) << outcome.error().message();
    EXPECT_EQ(outcome->exit_code(), 6);
  }
  stop = true;
}

TEST(HostProgram, what_the_caller_ignores_does_not_confuse_init_or_guests) {
  Folder folder;
  Policy policy = policy_for(folder);
  policy.limits.file_sz_mb = 1;
  using Handler = void (*)(int);
  std::vector<std::pair<int, Handler>> before;
  for (int signal : {SIGCHLD, SIGPIPE, SIGXFSZ})
    before.emplace_back(signal, ::signal(signal, SIG_IGN));
  Result<Outcome> piped = run(policy, sh("yes | head -n 1; exit 6"));
  Result<Outcome> large = run(policy, sh("exec head -c 3000000 /dev/zero > big"));
  for (const auto& [signal, handler] : before) ::signal(signal, handler);
  EXPECT_EQ(piped->exit_code(), 6);
  EXPECT_EQ(piped->err, "");  // not "yes: standard output: Broken pipe"
  EXPECT_EQ(large->reason, Reason::file_size_limit);
}

TEST(HostProgram, signals_and_their_masks_are_left_alone) {
  static std::atomic<int> seen{0};
  auto* before = ::signal(SIGUSR1, [](int) { ++seen; });
  sigset_t mask_before{}, mask_after{};
  ::pthread_sigmask(SIG_BLOCK, nullptr, &mask_before);
  Folder folder;
  const pthread_t self = ::pthread_self();
  {
    std::atomic<bool> stop{false};
    std::jthread sender([&] {
      while (!stop) {
        ::pthread_kill(self, SIGUSR1);
        std::this_thread::sleep_for(200us);
      }
    });
    for (int i = 0; i < 20; ++i) EXPECT_EQ(run(policy_for(folder), sh("exit 6"))->exit_code(), 6);
    stop = true;
  }
  ::pthread_sigmask(SIG_BLOCK, nullptr, &mask_after);
  ::signal(SIGUSR1, before);
  EXPECT_GT(seen, 0);
  EXPECT_EQ(std::memcmp(&mask_before, &mask_after, sizeof mask_before), 0);
}

TEST(HostProgram, a_fork_that_destroys_a_jar_does_not_end_it) {
  Folder folder;
  std::optional<Jar> jar = Jar::start(policy_for(folder)).value();
  pid_t pid = ::fork();
  if (pid == 0) {
    jar.reset();
    ::_exit(0);
  }
  ::waitpid(pid, nullptr, 0);
  EXPECT_TRUE(jar->alive());
  EXPECT_EQ(jar->spawn(sh("echo x")).value().wait()->out, "x\n");
}

// What a supervisor does until it is killed, in a process of its own.
pid_t fork_supervisor(const std::function<void()>& life) {
  pid_t pid = ::fork();
  if (pid == 0) {
    life();
    ::_exit(0);
  }
  return pid;
}

TEST(HostProgram, sigkill_of_the_supervisor_ends_everything_inside) {
  Folder folder;
  const std::string word = unique_seconds();
  pid_t supervisor = fork_supervisor([&] {
    (void)run(policy_for(folder),
              sh("(trap '' HUP TERM; setsid sleep " + word + ") & sleep " + word));
  });
  // Two sleeps and the two shells that have the word in their script.
  for (int i = 0; i < 200 && processes_with(word) < 3; ++i) std::this_thread::sleep_for(20ms);
  EXPECT_GE(processes_with(word), 3);
  ::kill(supervisor, SIGKILL);
  ::waitpid(supervisor, nullptr, 0);
  EXPECT_TRUE(becomes(0, word));
}

TEST(HostProgram, sigkill_ends_a_jar_whose_guest_stops_every_new_process) {
  Folder folder;
  const std::string word = unique_seconds();
  pid_t supervisor = fork_supervisor([&] {
    Jar jar = Jar::start(policy_for(folder)).value();
    Process stopper = jar.spawn({.arguments = {"/usr/bin/python3", "-I", "-c",
                                               ("import os, signal\n"
                                                "while True:\n"
                                                "  try: os.kill(-1, signal.SIGSTOP)\n"
                                                "  except OSError: pass\n"),
                                               word}})
                          .value();
    (void)stopper.wait_for(300ms);
    std::vector<Process> stopped;  // most of them before their exec, which init waits for
    for (int i = 0; i < 20; ++i) stopped.push_back(jar.spawn(sh("true")).value());
    folder.write("spawned", "");
    ::sleep(20);
  });
  for (int i = 0; i < 500 && !std::filesystem::exists(folder.path() + "/spawned"); ++i)
    std::this_thread::sleep_for(20ms);
  std::this_thread::sleep_for(200ms);
  EXPECT_GE(processes_with(word), 1);
  ::kill(supervisor, SIGKILL);
  ::waitpid(supervisor, nullptr, 0);
  EXPECT_TRUE(becomes(0, word));
}

TEST(HostProgram, sigkill_ends_everything_while_forks_hold_the_supervisors_descriptors) {
  Folder folder;
  const std::string word = unique_seconds();
  pid_t supervisor = fork_supervisor([&] {
    Jar jar = Jar::start(policy_for(folder)).value();
    if (::fork() == 0) {
      ::sleep(8);
      ::_exit(0);
    }
    Process process = jar.spawn({.arguments = {"sleep", word}}).value();
    (void)process.wait();
  });
  EXPECT_TRUE(becomes(1, word));
  ::kill(supervisor, SIGKILL);
  ::waitpid(supervisor, nullptr, 0);
  EXPECT_TRUE(becomes(0, word));
}

}  // namespace
}  // namespace belljar
