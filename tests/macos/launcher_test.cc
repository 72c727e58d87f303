// What the launcher for macOS decides, tried on Linux with calls that only look like macOS's.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "launcher/macos/spawn.h"
#include "launcher/macos/supervise.h"
#include "launcher/macos/usage.h"
#include "plan/macos.h"
#include "policy/profiles.h"
#include "support/folder.h"

namespace belljar::macos {
namespace {

using namespace std::chrono_literals;

struct Ends {
  Fd read, write;
};
Ends make_ends() {
  int fds[2];
  EXPECT_EQ(::pipe2(fds, O_CLOEXEC), 0);
  return {Fd(fds[0]), Fd(fds[1])};
}

class MacLauncher : public ::testing::Test {
 protected:
  MacLauncher() {
    ::signal(SIGPIPE, SIG_IGN);
    Settings settings;
    settings.profile = "restricted";
    Result<Policy> policy = make_policy(settings, {.cwd = folder_.path(), .home = folder_.path()});
    const Caller caller{.home = folder_.path(), .cwd = folder_.path(), .environment = {}};
    Result<MacPlan> plan = resolve_for_mac(*policy, caller, seatbelt::plain_mac());
    EXPECT_TRUE(plan) << plan.error().message();
    plan_ = std::move(plan->seatbelt);
    plan_.workdir = folder_.path();  // which is no link on this host
  }

  Result<Outcome> run(std::vector<std::string> arguments, Watched watched = {}) {
    Ends in = make_ends(), out = make_ends(), err = make_ends();
    Result<pid_t> pid = spawn({.plan = &plan_,
                               .arguments = std::move(arguments),
                               .environment = {"PATH=/usr/bin:/bin"},
                               .in_fd = in.read.get(),
                               .out_fd = out.write.get(),
                               .err_fd = err.write.get()});
    if (!pid) return std::unexpected(pid.error());
    for (Fd* fd : {&in.read, &out.write, &err.write}) fd->reset();
    watched.pid = pid_ = *pid;
    watched.input = std::move(in.write);
    watched.output = std::move(out.read);
    watched.errors = std::move(err.read);
    if (watched.max_output == 0) watched.max_output = 1 << 20;
    return supervise(std::move(watched));
  }
  Result<Outcome> sh(const char* script, Watched watched = {}) {
    return run({"sh", "-c", script}, std::move(watched));
  }

  // Processes that were killed are gone when their new parent has reaped them.
  bool group_is_gone() const {
    for (int i = 0; i < 400; ++i) {
      if (usage_of_group(pid_).memory == 0) return true;
      std::this_thread::sleep_for(50ms);
    }
    return false;
  }

  testing::Folder folder_;
  seatbelt::Plan plan_;
  pid_t pid_ = -1;
};

TEST_F(MacLauncher, an_exit_code_and_both_outputs_come_back) {
  const Result<Outcome> outcome = sh("cat; echo oops >&2; pwd; exit 3", {.text = "hello\n"});
  ASSERT_TRUE(outcome) << outcome.error().message();
  EXPECT_EQ(outcome->code, 3);
  EXPECT_EQ(outcome->reason, Reason::exited);
  EXPECT_EQ(outcome->out, "hello\n" + folder_.path() + "\n");
  EXPECT_EQ(outcome->err, "oops\n");
}

TEST_F(MacLauncher, a_signal_is_told_from_an_exit) {
  const Result<Outcome> outcome = sh("kill -TERM $$");
  EXPECT_TRUE(outcome->by_signal);
  EXPECT_EQ(outcome->code, SIGTERM);
  EXPECT_EQ(outcome->reason, Reason::signaled);
}

TEST_F(MacLauncher, a_command_that_is_not_there_was_not_started) {
  const Result<Outcome> outcome = run({"no-such-command-here"});
  EXPECT_EQ(outcome->reason, Reason::not_started);
  EXPECT_EQ(outcome->exit_code(), 127);
}

TEST_F(MacLauncher, a_guest_that_does_not_read_does_not_end_us) {
  const Result<Outcome> outcome = sh("exec <&-; echo ok", {.text = std::string(1 << 20, 'x')});
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->out, "ok\n");
}

TEST_F(MacLauncher, output_beyond_the_limit_is_counted) {
  const Result<Outcome> outcome = sh("head -c 300000 /dev/zero", {.max_output = 1000});
  EXPECT_EQ(outcome->out.size(), 1000U);
  EXPECT_EQ(outcome->out_dropped, 299000U);
}

TEST_F(MacLauncher, the_time_is_over_for_the_whole_group) {
  const Result<Outcome> outcome = sh("sleep 300 & sleep 300", {.timeout = 500ms});
  EXPECT_EQ(outcome->reason, Reason::timeout);
  EXPECT_EQ(outcome->exit_code(), 124);
  EXPECT_TRUE(group_is_gone());
}

TEST_F(MacLauncher, what_the_guest_left_behind_ends_with_it) {
  const Result<Outcome> outcome = sh("sleep 300 & echo started");
  EXPECT_EQ(outcome->out, "started\n");
  EXPECT_EQ(outcome->code, 0);
  EXPECT_TRUE(group_is_gone());
}

TEST_F(MacLauncher, memory_is_watched) {
  const Result<Outcome> outcome =
      sh("x=$(head -c 300000000 /dev/zero | tr '\\0' x); sleep 300", {.memory_mb = 100});
  EXPECT_EQ(outcome->reason, Reason::out_of_memory);
  EXPECT_EQ(outcome->limits_hit, std::vector<std::string>{"max_memory_mb"});
  EXPECT_GT(outcome->peak_memory_kb, 100U << 10U);
  EXPECT_TRUE(group_is_gone());
}

TEST_F(MacLauncher, processor_time_is_watched) {
  const Result<Outcome> outcome = sh("while :; do :; done", {.cpu_secs = 0});
  EXPECT_EQ(outcome->reason, Reason::cpu_limit);
}

// The script that sets them is POSIX's, and so are its units: both hard and soft.
TEST_F(MacLauncher, limits_hold_before_the_command_starts) {
  const Result<Outcome> outcome =
      sh("ulimit -c; ulimit -t; ulimit -f; ulimit -n; ulimit -Ht; ulimit -Hf; ulimit -Hn");
  EXPECT_EQ(outcome->out, "0\n600\n524288\n1024\n600\n524288\n1024\n") << outcome->err;
}

TEST_F(MacLauncher, nothing_starts_but_by_sandbox_exec) {
  plan_.wrap[0] = "/bin/sh";
  EXPECT_FALSE(sh("true"));
}

}  // namespace
}  // namespace belljar::macos
