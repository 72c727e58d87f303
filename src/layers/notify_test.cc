#include "layers/notify.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <span>

#include "support/bpf.h"

namespace belljar::notify {
namespace {

std::uint32_t verdict(int call, std::uint64_t first = 0, std::uint64_t second = 0) {
  const sock_fprog program = filter({.calls = Calls::connects});
  seccomp_data data{};
  data.nr = call;
  data.args[0] = first;
  data.args[1] = second;
  const auto found = bpf::evaluate(std::span(program.filter, program.len), data);
  return found ? found->action : SECCOMP_RET_KILL_PROCESS;
}

constexpr std::uint32_t kRefused = SECCOMP_RET_ERRNO | EACCES;
constexpr std::uint64_t kHigh = 0xffff'ffff'0000'0000;  // the kernel reads an int

TEST(ConnectFilter, every_connect_waits_for_the_supervisor) {
  EXPECT_EQ(verdict(SYS_connect), SECCOMP_RET_USER_NOTIF);
}

TEST(ConnectFilter, no_unix_socket_sends_datagrams) {
  for (const int call : {SYS_socket, SYS_socketpair})
    for (const std::uint64_t flags : {0U, 0U + SOCK_CLOEXEC, 0U + (SOCK_CLOEXEC | SOCK_NONBLOCK)}) {
      EXPECT_EQ(verdict(call, AF_UNIX, SOCK_STREAM | flags), SECCOMP_RET_ALLOW);
      EXPECT_EQ(verdict(call, AF_UNIX, SOCK_SEQPACKET | flags), SECCOMP_RET_ALLOW);
      for (const std::uint64_t type : {0U + SOCK_DGRAM, 0U + SOCK_RAW, 0U + SOCK_RDM, 0U, 15U}) {
        EXPECT_EQ(verdict(call, AF_UNIX, type | flags), kRefused);
        EXPECT_EQ(verdict(call, kHigh | AF_UNIX, kHigh | (type | flags)), kRefused);
      }
    }
}

TEST(ConnectFilter, other_calls_and_families_go_on) {
  EXPECT_EQ(verdict(SYS_socket, AF_INET, SOCK_DGRAM), SECCOMP_RET_ALLOW);
  for (const int call : {SYS_sendto, SYS_sendmsg, SYS_sendmmsg, SYS_bind, SYS_listen, SYS_accept4})
    EXPECT_EQ(verdict(call, 3, 0), SECCOMP_RET_ALLOW);
}

}  // namespace
}  // namespace belljar::notify
