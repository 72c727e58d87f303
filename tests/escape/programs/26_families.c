// Sockets that ordinary programs do not need. With any argument, routing netlink
// too, which is only one of them where there is no network.
#include "attempt.h"

#include <linux/netlink.h>
#include <netinet/in.h>
#include <sys/socket.h>

static void make(const char* what, int family, int type, int protocol) {
  int fd = socket(family, type, protocol);
  attempt(what, fd);
  if (fd >= 0) close(fd);
}

int main(int argc, char** argv) {
  (void)argv;
  make("vsock", AF_VSOCK, SOCK_STREAM, 0);
  make("alg", AF_ALG, SOCK_SEQPACKET, 0);
  make("packet", AF_PACKET, SOCK_RAW, 0);
  make("packet_dgram", AF_PACKET, SOCK_DGRAM, 0);
  make("raw_icmp", AF_INET, SOCK_RAW, IPPROTO_ICMP);
  make("raw_tcp", AF_INET, SOCK_RAW, IPPROTO_TCP);
  make("raw_icmp6", AF_INET6, SOCK_RAW, IPPROTO_ICMPV6);
  make("xdp", 44, SOCK_RAW, 0);
  make("key", AF_KEY, SOCK_RAW, 2);
  make("bluetooth", AF_BLUETOOTH, SOCK_RAW, 0);
  make("can", AF_CAN, SOCK_RAW, 1);
  make("tipc", AF_TIPC, SOCK_STREAM, 0);
  make("rds", AF_RDS, SOCK_SEQPACKET, 0);
  make("qipcrtr", 42, SOCK_DGRAM, 0);
  make("smc", 43, SOCK_STREAM, 0);
  make("netlink_uevent", AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT);
  make("netlink_audit", AF_NETLINK, SOCK_RAW, NETLINK_AUDIT);
  make("netlink_generic", AF_NETLINK, SOCK_RAW, NETLINK_GENERIC);
  make("netlink_sock_diag", AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG);
  make("netlink_netfilter", AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER);
  make("netlink_connector", AF_NETLINK, SOCK_DGRAM, NETLINK_CONNECTOR);
  make("netlink_crypto", AF_NETLINK, SOCK_RAW, NETLINK_CRYPTO);
  // A filter must not compare what the kernel cuts off.
  attempt("vsock_high_bits",
          syscall(SYS_socket, 0xffff00000000ull | AF_VSOCK, (long)SOCK_STREAM, 0L));
  attempt("netlink_uevent_high_bits", syscall(SYS_socket, 0xffff00000000ull | AF_NETLINK,
                                              (long)SOCK_RAW, (long)NETLINK_KOBJECT_UEVENT));
  attempt("netlink_uevent_flags",
          syscall(SYS_socket, (long)AF_NETLINK, (long)SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
                  0xffff00000000ull | NETLINK_KOBJECT_UEVENT));
  if (argc > 1) make("netlink_route", AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
  return done();
}
