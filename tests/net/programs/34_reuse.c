// Takes a connection that was allowed apart and uses its socket for something else.
// argv: what allowed forbidden port (IPv4)
//   again     disconnects it (AF_UNSPEC) and connects to the forbidden address
//   listen    disconnects it and listens: prints `port N`, and waits to be called
//   stdin     the same as `again` with the socket that is standard input, never connected
//   datagram  sends to the forbidden address from the UDP socket that is standard input
#include "../../escape/programs/attempt.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

static struct sockaddr_in allowed, forbidden;
static const struct sockaddr kNone = {.sa_family = AF_UNSPEC};

static int call(int fd, const struct sockaddr_in* to) {
  char answer[16];
  if (connect(fd, (const void*)to, sizeof *to) != 0) return -1;
  if (send(fd, "knock\n", 6, MSG_NOSIGNAL) < 0) return -1;
  struct pollfd ready = {fd, POLLIN, 0};
  if (poll(&ready, 1, 2000) != 1) return errno = ETIMEDOUT, -1;
  int got = recv(fd, answer, sizeof answer, 0);
  return got == 0 ? (errno = EPIPE, -1) : got;
}

int main(int argc, char** argv) {
  allowed.sin_family = forbidden.sin_family = AF_INET;
  allowed.sin_port = forbidden.sin_port = htons(atoi(argument(argc, argv, 4)));
  inet_pton(AF_INET, argv[2], &allowed.sin_addr);
  inet_pton(AF_INET, argv[3], &forbidden.sin_addr);
  const char* what = argv[1];

  if (strcmp(what, "datagram") == 0) {
    attempt(what, sendto(0, "datagram", 8, 0, (void*)&forbidden, sizeof forbidden));
    return done();
  }
  int fd = strcmp(what, "stdin") == 0 ? 0 : socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd != 0 && call(fd, &allowed) < 0) {
    perror("the allowed address");
    return 1;
  }
  connect(fd, &kNone, sizeof kNone);
  if (strcmp(what, "listen") != 0) {
    attempt(what, call(fd, &forbidden));
    connect(fd, &kNone, sizeof kNone);
    return done();
  }
  struct sockaddr_in own = {.sin_family = AF_INET};
  socklen_t size = sizeof own;
  bind(fd, (void*)&own, size);  // it may still have its address
  if (listen(fd, 8) != 0) {
    stopped(what, errno);
    return done();
  }
  getsockname(fd, (void*)&own, &size);
  printf("port %d\n", ntohs(own.sin_port));
  fflush(stdout);
  struct pollfd called = {fd, POLLIN, 0};
  if (poll(&called, 1, 1500) == 1) {
    char nothing;
    // Until the caller has hung up: ending now would reset a call that it has not seen answered.
    (void)!read(accept(fd, NULL, NULL), &nothing, 1);
    escaped(what);
  } else {
    stopped(what, ETIMEDOUT);
  }
  return done();
}
