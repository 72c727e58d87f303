// Reaches for the host's network. argv: kind:address:port, kind one of tcp, udp,
// fastopen, mptcp, udplite, sctp, icmp; an IPv6 address in brackets.
#include "attempt.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    char kind[16] = {0}, host[128] = {0};
    int port = 0;
    if (sscanf(argv[i], "%15[^:]:[%127[^]]]:%d", kind, host, &port) != 3 &&
        sscanf(argv[i], "%15[^:]:%127[^:]:%d", kind, host, &port) != 3) {
      return 99;
    }
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    bool six = strchr(host, ':') != NULL;
    inet_pton(six ? AF_INET6 : AF_INET, host, six ? (void*)&v6.sin6_addr : (void*)&v4.sin_addr);
    const struct sockaddr* to = six ? (void*)&v6 : (void*)&v4;
    socklen_t size = six ? sizeof v6 : sizeof v4;
    int family = six ? AF_INET6 : AF_INET;

    bool stream = true;
    int protocol = 0;
    if (strcmp(kind, "udp") == 0) stream = false;
    if (strcmp(kind, "udplite") == 0) stream = false, protocol = 136;
    if (strcmp(kind, "icmp") == 0) stream = false, protocol = six ? IPPROTO_ICMPV6 : IPPROTO_ICMP;
    if (strcmp(kind, "mptcp") == 0) protocol = 262;
    if (strcmp(kind, "sctp") == 0) protocol = 132;
    int fd = socket(family, (stream ? SOCK_STREAM : SOCK_DGRAM) | SOCK_NONBLOCK, protocol);
    long result = fd;
    if (fd >= 0 && strcmp(kind, "icmp") == 0) {
      static const unsigned char kEcho[8] = {8, 0, 0xf7, 0xff};
      result = sendto(fd, kEcho, sizeof kEcho, 0, to, size);
      struct pollfd reply = {fd, POLLIN, 0};
      if (result >= 0 && poll(&reply, 1, 300) != 1) result = -1, errno = ETIMEDOUT;
    } else if (fd >= 0 && !stream) {
      result = sendto(fd, "knock", 5, 0, to, size);
    } else if (fd >= 0) {
      result = strcmp(kind, "fastopen") == 0
                   ? sendto(fd, "knock", 5, MSG_FASTOPEN | MSG_NOSIGNAL, to, size)
                   : connect(fd, to, size);
      if (result < 0 && errno == EINPROGRESS) {
        struct pollfd ready = {fd, POLLOUT, 0};
        int err = ETIMEDOUT;
        socklen_t length = sizeof err;
        if (poll(&ready, 1, 1000) == 1) getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &length);
        result = err ? -1 : 0;
        errno = err;
      }
      if (result == 0) result = send(fd, "knock", 5, MSG_NOSIGNAL);
    }
    attempt(argv[i], result);
    if (fd >= 0) close(fd);
  }
  return done();
}
