// The jar's init, spoken to directly: whatever comes over its socket, it neither hangs
// nor leaves behind what it has started. It runs here as a plain child.
#include "launcher/init_image.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <random>

#include "base/fd.h"
#include "base/uapi.h"
#include "launcher/protocol.h"
#include "launcher/request.h"

namespace belljar::launcher {
namespace {

using protocol::Header;
using protocol::Kind;

constexpr int kPatienceMs = 5000;

[[noreturn]] void become_init(int control_fd, int supervisor_fd, int program_fd) {
  program_fd = ::fcntl(program_fd, F_DUPFD, 100);  // out of the way of what follows
  const int high[3] = {::fcntl(control_fd, F_DUPFD, 100), ::fcntl(supervisor_fd, F_DUPFD, 100),
                       ::open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC)};
  ::dup2(high[0], protocol::kControlFd);
  ::dup2(high[1], protocol::kSupervisorFd);
  ::dup2(high[2], protocol::kChildrenFd);
  ::syscall(SYS_close_range, 6, 99, 0);
  const char* const arguments[] = {"belljar-init", "0", nullptr};
  const char* const environment[] = {nullptr};
  ::syscall(SYS_execveat, program_fd, "", arguments, environment, AT_EMPTY_PATH);
  ::_exit(99);
}

class Init : public ::testing::Test {
 protected:
  Init() {
    Fd program(::memfd_create("init", MFD_CLOEXEC | MFD_EXEC));
    std::string_view image = init_image();
    EXPECT_EQ(::write(program.get(), image.data(), image.size()), std::ssize(image));
    int sockets[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
    control_ = Fd(sockets[0]);
    Fd far(sockets[1]);
    Fd self(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
    pid_ = ::fork();
    if (pid_ == 0) become_init(far.get(), self.get(), program.get());
    pidfd_ = Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
    EXPECT_EQ(next(), Kind::ready);
  }
  void TearDown() override {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  static bool readable(int fd) {
    pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
    return ::poll(&ready, 1, kPatienceMs) == 1;
  }
  std::optional<Kind> next() {
    Header header{};
    if (!readable(control_.get())) return std::nullopt;
    if (::recv(control_.get(), &header, sizeof header, MSG_DONTWAIT) != sizeof header)
      return std::nullopt;
    value_ = header.value;
    return header.kind;
  }
  bool ends() { return readable(pidfd_.get()); }
  void send(std::string_view bytes) {
    (void)::send(control_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  void send(const Header& header) { send({reinterpret_cast<const char*>(&header), sizeof header}); }
  Status spawn(const Command& command) {
    std::string request = TRY(encode_spawn(command, 1, "/", {"PATH=/usr/bin:/bin"}));
    return send_all(control_.get(), request, command.stdio_fds);
  }
  // Something that must not be left behind. Its pid is known, as there is no namespace.
  pid_t start_sleeper() {
    EXPECT_TRUE(spawn({.arguments = {"sleep", "60"}, .leads = false}));
    EXPECT_EQ(next(), Kind::started);
    return static_cast<pid_t>(value_);
  }
  static bool is_gone(pid_t pid) {
    for (int i = 0; i < 250; ++i) {
      if (::kill(pid, 0) < 0) return true;
      ::usleep(20'000);
    }
    return false;
  }

  Fd control_, pidfd_;
  pid_t pid_ = -1;
  std::uint32_t value_ = 0;
};

TEST_F(Init, a_good_request_is_run) {  // the control: the tests below fail for their own reasons
  ASSERT_TRUE(spawn({.arguments = {"sh", "-c", "exit 7"}}));
  EXPECT_EQ(next(), Kind::started);
  EXPECT_EQ(next(), Kind::exited);
  EXPECT_EQ(WEXITSTATUS(value_), 7);
  EXPECT_TRUE(ends());
}

TEST_F(Init, garbage_ends_it_and_what_it_started) {
  pid_t sleeper = start_sleeper();
  send(std::string(4096, '\xaa'));
  EXPECT_TRUE(ends());
  EXPECT_TRUE(is_gone(sleeper));
}

TEST_F(Init, an_unknown_kind_ends_it) {
  // NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange): that is the test
  send(Header{static_cast<Kind>(77), 0, 0, 0});
  EXPECT_TRUE(ends());
}

TEST_F(Init, a_request_that_is_too_long_ends_it) {
  send(Header{Kind::spawn, 1, 0, protocol::kMaxPayload + 1});
  EXPECT_TRUE(ends());
}

TEST_F(Init, a_request_without_descriptors_ends_it) {
  send(Header{Kind::spawn, 1, 0, 64});
  send(std::string(64, '\0'));
  EXPECT_TRUE(ends());
}

TEST_F(Init, a_request_without_payload_ends_it) {
  send(Header{Kind::spawn, 1, 0, 0});
  EXPECT_TRUE(ends());
}

TEST_F(Init, a_truncated_header_ends_it_with_the_supervisor) {
  pid_t sleeper = start_sleeper();
  send("half");
  control_.reset();
  EXPECT_TRUE(ends());
  EXPECT_TRUE(is_gone(sleeper));
}

TEST_F(Init, a_truncated_payload_ends_it_though_a_fork_holds_the_socket) {
  send(Header{Kind::spawn, 1, 0, 1000});
  send("not a thousand bytes");
  Fd held(::fcntl(control_.get(), F_DUPFD_CLOEXEC, 3));
  ::shutdown(control_.get(), SHUT_RDWR);
  control_.reset();
  EXPECT_TRUE(ends());
}

// Counts and strings that lie about one another, with the descriptors that a real
// request has.
TEST_F(Init, counts_that_lie_end_it) {
  std::string request = *encode_spawn({.arguments = {"true"}}, 1, "/", {"A=b"});
  protocol::Spawn spawn{};
  std::memcpy(&spawn, request.data() + sizeof(Header), sizeof spawn);
  spawn.arguments = 0x7fffffff;
  std::memcpy(request.data() + sizeof(Header), &spawn, sizeof spawn);
  const std::array<int, 3> fds{0, 1, 2};
  ASSERT_TRUE(send_all(control_.get(), request, fds));
  EXPECT_TRUE(ends());
}

TEST_F(Init, strings_without_an_end_end_it) {
  std::string request = *encode_spawn({.arguments = {"true"}}, 1, "/", {"A=b"});
  request.back() = 'x';
  const std::array<int, 3> fds{0, 1, 2};
  ASSERT_TRUE(send_all(control_.get(), request, fds));
  EXPECT_TRUE(ends());
}

TEST_F(Init, signals_for_nobody_are_ignored) {
  send(Header{Kind::signal, 12345, SIGKILL, 0});
  EXPECT_EQ(next(), Kind::signaled);
  send(Header{Kind::resume, 12345, 1, 0});
  send(Header{Kind::signal_group, 1, SIGKILL, 0});
  EXPECT_EQ(next(), Kind::group_signaled);
  send(Header{Kind::signal_group, static_cast<std::uint32_t>(::getpgrp()), SIGKILL, 0});
  EXPECT_EQ(next(), Kind::group_signaled);
  pid_t sleeper = start_sleeper();
  send(Header{Kind::signal, 1, 9999, 0});
  EXPECT_EQ(next(), Kind::signaled);
  EXPECT_EQ(::kill(sleeper, 0), 0);
  send(Header{Kind::signal, 1, SIGKILL, 0});
  EXPECT_EQ(next(), Kind::signaled);
  EXPECT_EQ(next(), Kind::exited);
}

TEST_F(Init, a_command_as_long_as_the_kernel_allows_is_run) {
  Command command{.arguments = {"true"}};
  for (int i = 0; i < 10; ++i) command.arguments.emplace_back(100'000, 'x');
  ASSERT_TRUE(spawn(command));
  EXPECT_EQ(next(), Kind::started);
  EXPECT_TRUE(ends());
}

TEST_F(Init, a_command_that_is_too_long_for_the_kernel_fails) {
  Command command{.arguments = {"true"}};
  for (int i = 0; i < 70; ++i) command.arguments.emplace_back(100'000, 'x');
  ASSERT_TRUE(spawn(command));
  EXPECT_EQ(next(), Kind::failed);
  EXPECT_EQ(value_, static_cast<std::uint32_t>(E2BIG));
}

TEST_F(Init, random_bytes_never_hang_it) {
  std::mt19937 random(20240607);  // NOLINT(cert-msc51-cpp): the same each time
  std::string bytes(64 << 10, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  send(bytes);
  ::shutdown(control_.get(), SHUT_WR);
  EXPECT_TRUE(ends());
}

}  // namespace
}  // namespace belljar::launcher
