// The public API, as a program that links belljar meets it.
#include "belljar/belljar.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "support/folder.h"
#include "support/leavings.h"

namespace belljar {
namespace {

using namespace std::chrono_literals;
using belljar::testing::Folder;
using std::chrono::steady_clock;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Api : public ::testing::Test {
 protected:
  Api() {
    policy.files.workdir = folder.path();
    policy.limits.timeout = 15s;  // a test that hangs says so
  }

  static Policy named(const char* name) { return profile(name).value(); }
  static Command sh(std::string script) { return {.arguments = {"sh", "-c", std::move(script)}}; }
  static Command python(std::string script) {
    return {.arguments = {"/usr/bin/python3", "-I", "-c", std::move(script)}};
  }
  Outcome must_run(const Command& command) {
    Result<Outcome> outcome = run(policy, command);
    if (!outcome) {
      ADD_FAILURE() << outcome.error().message();
      return {};
    }
    return *outcome;
  }
  Jar must_start() {
    Result<Jar> jar = Jar::start(policy);
    if (!jar) throw std::runtime_error(jar.error().message());
    return std::move(*jar);
  }
  static Process must_spawn(Jar& jar, const Command& command) {
    Result<Process> process = jar.spawn(command);
    if (!process) throw std::runtime_error(process.error().message());
    return std::move(*process);
  }

  Folder folder;
  Policy policy = named("restricted");
};

// ---- run ----------------------------------------------------------------------

TEST_F(Api, run_tells_exit_code_and_output) {
  Outcome outcome = must_run(sh("echo out; echo err >&2; exit 3"));
  EXPECT_EQ(outcome.reason, Reason::exited);
  EXPECT_EQ(outcome.exit_code(), 3);
  EXPECT_EQ(outcome.out, "out\n");
  EXPECT_EQ(outcome.err, "err\n");
  EXPECT_GT(outcome.wall, 0us);
  EXPECT_GT(outcome.peak_memory_kb, 0U);
  EXPECT_FALSE(outcome.kept.empty());
}

TEST_F(Api, every_profile_runs) {
  for (const char* name :
       {"open", "developer", "restricted", "public-bot", "trusted-maintenance"}) {
    policy = named(name);
    policy.files.workdir = folder.path();
    EXPECT_EQ(must_run(sh("echo $((6 * 7))")).out, "42\n") << name;
  }
}

TEST_F(Api, without_a_workdir_nothing_is_granted) {
  policy.files.workdir.clear();
  Outcome outcome = must_run(sh("pwd; ls " + folder.path()));
  EXPECT_EQ(outcome.out, "/\n");
  EXPECT_NE(outcome.exit_code(), 0);
}

TEST_F(Api, what_is_written_in_the_workdir_stays) {
  EXPECT_EQ(must_run(sh("echo kept > file")).exit_code(), 0);
  EXPECT_EQ(folder.read("file"), "kept\n");
}

TEST_F(Api, output_beyond_the_cap_is_dropped_and_counted) {
  Command command = sh("head -c 3000000 /dev/zero | tr '\\0' x; echo done >&2");
  command.max_output = 1000;
  Outcome outcome = must_run(command);
  EXPECT_EQ(outcome.out, std::string(1000, 'x'));
  EXPECT_EQ(outcome.out_dropped, 2'999'000U);
  EXPECT_EQ(outcome.err, "done\n");
  EXPECT_EQ(outcome.err_dropped, 0U);
}

TEST_F(Api, input_is_read_and_ends) {
  Command command = sh("cat; cat /dev/stdin | wc -c");
  command.input = std::string(300'000, 'y');
  command.max_output = 1 << 20;
  Outcome outcome = must_run(command);
  EXPECT_THAT(outcome.out, StartsWith(command.input)) << outcome.err;
}

TEST_F(Api, input_cannot_be_changed_by_the_guest) {
  Command command = python(
      "import os\n"
      "for deed in (lambda: os.write(0, b'x'), lambda: os.ftruncate(0, 1 << 20),\n"
      "             lambda: os.write(os.open('/proc/self/fd/0', os.O_RDWR), b'x')):\n"
      "  try: deed(); print('changed')\n"
      "  except OSError: pass\n");
  command.input = "text";
  EXPECT_EQ(must_run(command).out, "");
}

TEST_F(Api, without_input_there_is_nothing_to_read) {
  EXPECT_EQ(must_run(sh("cat; echo end")).out, "end\n");
}

TEST_F(Api, given_descriptors_are_used_and_stay_open) {
  folder.write("in", "from a file\n");
  int in = ::open((folder.path() + "/in").c_str(), O_RDONLY | O_CLOEXEC);
  int out = ::open((folder.path() + "/out").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
  Command command = sh("cat; echo problem >&2");
  command.in_fd = in;
  command.out_fd = command.err_fd = out;
  Outcome outcome = must_run(command);
  EXPECT_EQ(outcome.out + outcome.err, "");
  EXPECT_EQ(folder.read("out"), "from a file\nproblem\n");
  EXPECT_EQ(::close(in), 0);
  EXPECT_EQ(::close(out), 0);
}

TEST_F(Api, a_folder_or_a_network_socket_as_descriptor_is_refused) {
  Command command = sh("true");
  command.in_fd = ::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  EXPECT_THAT(run(policy, command).error().what, HasSubstr("is a folder"));
  ::close(command.in_fd);
  command.in_fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_THAT(run(policy, command).error().what, HasSubstr("is a network socket"));
  ::close(command.in_fd);
}

TEST_F(Api, dev_stdout_and_dev_stderr_can_be_opened) {
  Outcome outcome = must_run(sh("echo one > /dev/stdout; echo two > /dev/stderr"));
  EXPECT_EQ(outcome.out, "one\n");
  EXPECT_EQ(outcome.err, "two\n");
}

TEST_F(Api, variables_and_folder_of_a_command) {
  std::filesystem::create_directory(folder.path() + "/below");
  Command command = sh("echo $MINE $HOME; pwd; env | grep -c ^MINE=");
  command.environment = {{"MINE", "old"}, {"MINE", "a=b"}, {"HOME", "/elsewhere"}};
  command.folder = folder.path() + "/below";
  EXPECT_EQ(must_run(command).out, "a=b /elsewhere\n" + folder.path() + "/below\n1\n");
  command.environment = {{"NOT=A NAME", "x"}};
  EXPECT_FALSE(run(policy, command));
}

TEST_F(Api, the_callers_variables_are_not_passed) {
  Caller caller = this_process();
  caller.environment.emplace_back("API_TEST_TOKEN=secret");
  Command command = sh("env");
  EXPECT_THAT(run(policy, command, caller).value().out, Not(HasSubstr("API_TEST_TOKEN")));
  policy.environment.pass.emplace_back("API_TEST_*");
  EXPECT_THAT(run(policy, command, caller).value().out, HasSubstr("API_TEST_TOKEN=secret"));
}

TEST_F(Api, a_command_that_is_not_there_is_an_outcome) {
  Outcome outcome = must_run({.arguments = {"no-such-command"}});
  EXPECT_EQ(outcome.reason, Reason::not_started);
  EXPECT_EQ(outcome.exec_error, ENOENT);
  EXPECT_EQ(outcome.exit_code(), 127);
  folder.write("plain", "text");
  outcome = must_run({.arguments = {"./plain"}});
  EXPECT_EQ(outcome.exit_code(), 126);
}

TEST_F(Api, what_we_cannot_do_is_an_error) {
  EXPECT_FALSE(run(policy, {}));
  EXPECT_FALSE(run(policy, {.arguments = {std::string("a\0b", 3)}}));
  EXPECT_FALSE(profile("no-such-profile"));
  policy.files.workdir = folder.path() + "/missing";
  EXPECT_THAT(run(policy, sh("true")).error().what, HasSubstr("workdir"));
  policy.files.workdir.clear();
  policy.mode = Mode::off;
  EXPECT_THAT(run(policy, sh("true")).error().what, HasSubstr("mode is off"));
}

TEST_F(Api, a_signal_is_told) {
  Outcome outcome = must_run(sh("kill -TERM $$"));
  EXPECT_EQ(outcome.reason, Reason::signaled);
  EXPECT_TRUE(outcome.by_signal);
  EXPECT_EQ(outcome.code, SIGTERM);
  EXPECT_EQ(outcome.exit_code(), 128 + SIGTERM);
}

TEST_F(Api, the_end_of_the_command_ends_what_it_started) {
  const auto began = steady_clock::now();
  EXPECT_EQ(must_run(sh("(trap '' HUP TERM; sleep 60) & (setsid sleep 60) & echo out")).out,
            "out\n");
  EXPECT_LT(steady_clock::now() - began, 10s);
}

// ---- limits -------------------------------------------------------------------

TEST_F(Api, timeout_ends_it) {
  policy.limits.timeout = 200ms;
  Outcome outcome = must_run(sh("echo before; sleep 60"));
  EXPECT_EQ(outcome.reason, Reason::timeout);
  EXPECT_EQ(outcome.exit_code(), 124);
  EXPECT_EQ(outcome.out, "before\n");
  EXPECT_THAT(outcome.limits_hit, Contains("timeout"));
  EXPECT_LT(outcome.wall, 2s);
}

TEST_F(Api, timeout_ends_one_that_ignores_it) {
  policy.limits.timeout = 200ms;
  Outcome outcome = must_run(sh("trap '' TERM INT HUP; while :; do :; done"));
  EXPECT_EQ(outcome.reason, Reason::timeout);
  EXPECT_LT(outcome.wall, 6s);
}

TEST_F(Api, a_timeout_of_for_ever_does_not_overflow) {
  policy.limits.timeout = std::chrono::milliseconds::max();
  EXPECT_EQ(must_run(sh("echo x")).out, "x\n");
}

TEST_F(Api, memory_of_all_processes_together_is_limited) {
  policy.limits.memory_mb = 96;
  Outcome outcome =
      must_run(python("import os, time\n"
                      "for i in range(3): os.fork()\n"
                      "x = bytearray(24 << 20)\n"  // each alone is within the limit
                      "x[::4096] = b'x' * len(x[::4096])\n"
                      "time.sleep(30)\n"));
  EXPECT_EQ(outcome.reason, Reason::out_of_memory) << outcome.err;
  EXPECT_THAT(outcome.limits_hit, Contains("max_memory_mb"));
}

TEST_F(Api, cpu_time_is_limited) {
  policy.limits.cpu_secs = 1;
  Outcome outcome = must_run(sh("while :; do :; done"));
  EXPECT_EQ(outcome.reason, Reason::cpu_limit);
}

TEST_F(Api, file_size_is_limited) {
  policy.limits.file_sz_mb = 1;
  Outcome outcome = must_run(sh("exec head -c 3000000 /dev/zero > big"));
  EXPECT_EQ(outcome.reason, Reason::file_size_limit);
  EXPECT_LE(std::filesystem::file_size(folder.path() + "/big"), std::size_t{1} << 20);
}

TEST_F(Api, output_without_end_does_not_outlive_its_timeout) {
  policy.limits.timeout = 500ms;
  Outcome outcome = must_run({.arguments = {"cat", "/dev/zero"}});
  EXPECT_EQ(outcome.reason, Reason::timeout);
  EXPECT_GT(outcome.out_dropped, 0U);
}

// ---- explain ------------------------------------------------------------------

TEST_F(Api, explain_names_the_profile_and_what_is_granted) {
  std::string text = explain(policy).value();
  EXPECT_THAT(text, HasSubstr("Profile restricted"));
  EXPECT_THAT(text, HasSubstr(folder.path()));
}

// ---- jar ----------------------------------------------------------------------

TEST_F(Api, commands_of_a_jar_share_files_and_processes) {
  Jar jar = must_start();
  EXPECT_FALSE(jar.kept().empty());
  EXPECT_EQ(must_spawn(jar, sh("echo first > /tmp/file")).wait()->exit_code(), 0);
  Process sleeper = must_spawn(jar, sh("exec sleep 60"));
  Outcome second = must_spawn(jar, sh("cat /tmp/file; pkill sleep && echo killed")).wait().value();
  EXPECT_EQ(second.out, "first\nkilled\n") << second.err;
  EXPECT_EQ(sleeper.wait()->code, SIGTERM);
  EXPECT_TRUE(jar.alive());
}

TEST_F(Api, waiting_again_gives_the_same) {
  Jar jar = must_start();
  Process process = must_spawn(jar, sh("echo x; exit 7"));
  EXPECT_EQ(process.wait()->exit_code(), 7);
  EXPECT_EQ(process.wait()->out, "x\n");
  EXPECT_EQ(process.wait_for(0ms).value()->exit_code(), 7);
}

TEST_F(Api, wait_for_gives_up_at_its_time) {
  Jar jar = must_start();
  Process process = must_spawn(jar, sh("exec sleep 60"));
  EXPECT_EQ(process.wait_for(0ms).value(), std::nullopt);
  EXPECT_EQ(process.wait_for(100ms).value(), std::nullopt);
  // Not SIGINT, which a caller in the background may have been told to ignore.
  EXPECT_TRUE(process.kill(SIGUSR1));
  EXPECT_EQ(process.wait()->code, SIGUSR1);
  EXPECT_TRUE(process.kill());  // too late is no failure
}

TEST_F(Api, kill_reaches_one_that_left_its_group) {
  Jar jar = must_start();
  Process process = must_spawn(jar, python("import os, time\n"
                                           "child = os.fork()\n"
                                           "if child == 0: time.sleep(60)\n"
                                           "os.setpgid(child, child)\n"
                                           "os.setpgid(0, child)\n"
                                           "print('left', flush=True)\n"
                                           "time.sleep(60)\n"));
  (void)process.wait_for(700ms);
  EXPECT_TRUE(process.kill());
  Result<std::optional<Outcome>> outcome = process.wait_for(5s);
  ASSERT_TRUE(outcome && *outcome);
  EXPECT_EQ((*outcome)->out, "left\n");
}

TEST_F(Api, a_process_in_the_background_does_not_hold_the_wait) {
  Jar jar = must_start();
  Outcome outcome = must_spawn(jar, sh("sleep 60 & echo x")).wait().value();
  EXPECT_EQ(outcome.out, "x\n");
  EXPECT_LT(outcome.wall, 10s);
}

TEST_F(Api, a_timeout_in_a_jar_ends_the_command_and_not_the_jar) {
  policy.limits.timeout = 300ms;
  Jar jar = must_start();
  Outcome outcome = must_spawn(jar, sh("trap '' TERM; while :; do :; done")).wait().value();
  EXPECT_EQ(outcome.reason, Reason::timeout);
  EXPECT_TRUE(jar.alive());
  EXPECT_EQ(must_spawn(jar, sh("echo next")).wait()->out, "next\n");
}

TEST_F(Api, too_much_memory_ends_the_jar) {
  policy.limits.memory_mb = 64;
  Jar jar = must_start();
  Process other = must_spawn(jar, sh("exec sleep 60"));
  Outcome outcome =
      must_spawn(jar, python("import os, time\n"
                             "for i in range(2): os.fork()\n"
                             "x = bytearray(24 << 20)\n"  // each alone is within the limit
                             "x[::4096] = b'x' * len(x[::4096])\n"
                             "time.sleep(30)\n"))
          .wait()
          .value();
  EXPECT_EQ(outcome.reason, Reason::out_of_memory) << outcome.err;
  EXPECT_FALSE(jar.alive());
  EXPECT_FALSE(jar.spawn(sh("true")));
  EXPECT_EQ(other.wait()->reason, Reason::out_of_memory);
}

TEST_F(Api, the_end_of_a_jar_ends_its_processes) {
  std::optional<Jar> jar = must_start();
  Process process = must_spawn(*jar, sh("echo before; exec sleep 60"));
  (void)process.wait_for(300ms);
  jar.reset();
  Outcome outcome = process.wait().value();
  EXPECT_EQ(outcome.code, SIGKILL);
  EXPECT_EQ(outcome.out, "before\n");
}

TEST_F(Api, a_process_that_nobody_waits_for_goes_on) {
  Jar jar = must_start();
  {
    Process left = must_spawn(jar, sh("yes | head -c 1000000; touch reached"));
  }
  for (int i = 0; i < 100 && !std::filesystem::exists(folder.path() + "/reached"); ++i)
    EXPECT_EQ(must_spawn(jar, sh("sleep 0.05")).wait()->exit_code(), 0);
  EXPECT_TRUE(std::filesystem::exists(folder.path() + "/reached"));
}

TEST_F(Api, a_guest_that_stops_everything_cannot_outlive_the_jar) {
  policy.limits.timeout = 500ms;
  std::optional<Jar> jar = must_start();
  Process stopper = must_spawn(*jar, python("import os, signal\n"
                                            "while True:\n"
                                            "  try: os.kill(-1, signal.SIGSTOP)\n"
                                            "  except OSError: pass\n"));
  for (int i = 0; i < 5 && jar->alive(); ++i) {
    Result<Process> process = jar->spawn(sh("true"));
    if (process) (void)process->wait_for(100ms);
  }
  const auto began = steady_clock::now();
  EXPECT_EQ(stopper.wait()->reason, Reason::timeout);
  jar.reset();
  EXPECT_LT(steady_clock::now() - began, 8s);
}

// ---- pool ---------------------------------------------------------------------

TEST_F(Api, a_pool_has_jars_ready_and_starts_one_when_it_has_none) {
  Pool pool(policy, 2);
  EXPECT_EQ(pool.ready(), 0U);
  ASSERT_TRUE(pool.fill());
  EXPECT_EQ(pool.ready(), 2U);
  for (std::size_t left : {1U, 0U, 0U}) {
    Result<Jar> jar = pool.take();
    ASSERT_TRUE(jar);
    EXPECT_EQ(pool.ready(), left);
    EXPECT_EQ(must_spawn(*jar, sh("echo x")).wait()->out, "x\n");
  }
  ASSERT_TRUE(pool.fill());
  EXPECT_EQ(pool.ready(), 2U);
}

TEST_F(Api, jars_of_a_pool_do_not_see_one_another) {
  Pool pool(policy, 2);
  ASSERT_TRUE(pool.fill());
  Jar one = pool.take().value();
  Jar two = pool.take().value();
  Process sleeper = must_spawn(one, sh("echo x > /tmp/one; exec sleep 60"));
  (void)sleeper.wait_for(200ms);
  EXPECT_EQ(must_spawn(two, sh("cat /tmp/one 2>&1 | grep -v 'No such'; pgrep sleep")).wait()->out,
            "");
}

}  // namespace
}  // namespace belljar
