#include "session/async_jar.h"

#include <gtest/gtest.h>

#include <csignal>
#include <sstream>

#include "base/file.h"
#include "belljar/belljar.h"

namespace belljar::session {
namespace {

// One jar and no other children. Its init is stopped as a guest can have it: by stopping what
// init waits for.
class OneJar : public testing::Test {
 protected:
  void SetUp() override {
    Policy policy = *profile("developer");
    policy.files.workdir = testing::TempDir();
    Result<launcher::Started> started = launcher::start(policy, this_process(), host_, nullptr,
                                                        [](const Plan&) -> Status { return {}; });
    ASSERT_TRUE(started) << started.error().message();
    Result<std::shared_ptr<AsyncJar>> jar =
        AsyncJar::make(loop_, {aside_, aside_}, std::move(*started));
    ASSERT_TRUE(jar) << jar.error().message();
    jar_ = std::move(*jar);
    null_ = open_path("/dev/null", O_RDWR).value();
  }
  void TearDown() override {
    jar_->end();
    loop_.run();
  }

  Result<std::shared_ptr<Process>> spawn(std::vector<std::string> arguments) {
    launcher::Command command;
    command.arguments = std::move(arguments);
    command.folder = "/";
    command.stdio_fds = {null_.get(), null_.get(), null_.get()};
    return jar_->spawn(std::move(command));
  }
  static void stop_init() {
    std::istringstream children(read_text("/proc/thread-self/children").value());
    pid_t init = 0;
    ASSERT_TRUE(children >> init);
    ASSERT_EQ(::kill(init, SIGSTOP), 0);
  }

  Loop loop_;
  Aside aside_;
  Host host_ = assume_host();
  std::shared_ptr<AsyncJar> jar_;
  Fd null_;
};

TEST_F(OneJar, ends_when_init_takes_no_more_signals) {
  const Result<std::shared_ptr<Process>> process = spawn({"/bin/sleep", "100"});
  ASSERT_TRUE(process) << process.error().message();
  stop_init();
  for (int i = 0; i < 20'000 && jar_->alive(); ++i) jar_->signal(**process, SIGCONT);
  EXPECT_FALSE(jar_->alive());
  EXPECT_TRUE((*process)->ended());
}

TEST_F(OneJar, ends_when_init_takes_only_a_part_of_a_request) {
  stop_init();
  const std::vector<std::string> arguments(16, std::string(100'000, 'x'));
  const auto began = Clock::now();
  EXPECT_FALSE(spawn({arguments}));
  EXPECT_FALSE(jar_->alive());
  EXPECT_LT(Clock::now() - began, std::chrono::seconds(5));
}

TEST_F(OneJar, takes_a_request_that_is_larger_than_its_socket) {
  std::vector<std::string> arguments(16, std::string(100'000, 'x'));
  arguments[0] = "/bin/true";
  const Result<std::shared_ptr<Process>> process = spawn(arguments);
  ASSERT_TRUE(process) << process.error().message();
  const auto end = Clock::now() + std::chrono::seconds(30);
  while (!(*process)->ended() && Clock::now() < end) loop_.run_one_for(std::chrono::seconds(1));
  EXPECT_EQ((*process)->status, 0);
  EXPECT_TRUE(jar_->alive());
}

}  // namespace
}  // namespace belljar::session
