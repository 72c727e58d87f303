// What a launch takes from the guest because of what it is given.
#include "launcher/start.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "base/file.h"
#include "launcher/live.h"
#include "policy/profiles.h"
#include "support/folder.h"

namespace belljar::launcher {
namespace {

using ::testing::HasSubstr;

// A program whose standard input is a file outside, which it tries to empty.
class GivenFile : public ::testing::Test {
 protected:
  GivenFile() {
    policy.files.workdir = work.path();
    policy.limits.timeout = std::chrono::seconds(30);
    std::ofstream(file) << "mine\n";
    fd = Fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
    host = probe_host(this_process());
  }

  belljar::Command python(std::string script, int in_fd) const {
    belljar::Command command;
    command.arguments = {"/usr/bin/python3", "-I", "-c", std::move(script)};
    command.in_fd = in_fd;
    return command;
  }
  Outcome run(const std::string& script, int in_fd) {
    const belljar::Command command = python(script, in_fd);
    Result<std::shared_ptr<Live>> live = Live::start(policy, this_process(), host, &command);
    if (!live) throw std::runtime_error(live.error().message());
    return (*live)->wait(1)->value();
  }

  testing::Folder work, outside;
  std::string file = outside.path() + "/file";
  Fd fd;
  Policy policy = find_profile("developer")->policy;
  Host host;
};

constexpr const char* kEmpty = "import os; os.truncate('/proc/self/fd/0', 0)";

TEST_F(GivenFile, is_not_emptied_where_landlock_does_not_know_of_it) {
  for (const int abi : {2, host.landlock.abi}) {
    host.landlock.abi = std::min(abi, host.landlock.abi);
    const Outcome outcome = run(kEmpty, fd.get());
    EXPECT_EQ(outcome.exit_code(), 1);
    EXPECT_THAT(outcome.err, HasSubstr("Permission denied"));
    EXPECT_EQ(read_text(file).value_or(""), "mine\n");
    host = probe_host(this_process());
  }
}

TEST_F(GivenFile, does_not_keep_a_program_from_emptying_its_own) {
  host.landlock.abi = std::min(2, host.landlock.abi);
  const std::string script =
      "import os; open('a', 'w').write('x'); f = open('a', 'r+'); f.truncate(0); "
      "print(os.path.getsize('a'), os.read(0, 9))";
  EXPECT_EQ(run(script, fd.get()).out, "0 b'mine\\n'\n");
  // By its name, too, when it was given no file.
  const std::string by_name =
      "import os; open('a', 'w').write('x'); os.truncate('a', 0); print(os.path.getsize('a'))";
  EXPECT_EQ(run(by_name, -1).out, "0\n");
}

TEST_F(GivenFile, is_not_given_to_who_comes_later_and_could_empty_it) {
  host.landlock.abi = std::min(2, host.landlock.abi);
  Result<std::shared_ptr<Live>> live = Live::start(policy, this_process(), host);
  ASSERT_TRUE(live) << live.error().message();
  const Result<std::uint32_t> spawned = (*live)->spawn(python(kEmpty, fd.get()));
  ASSERT_FALSE(spawned);
  EXPECT_THAT(spawned.error().message(), HasSubstr("could empty the file"));
  EXPECT_TRUE((*live)->spawn(python("print(1)", -1)));
}

}  // namespace
}  // namespace belljar::launcher
