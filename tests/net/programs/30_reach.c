// Asks libc for each name, then knocks at every address it is told. argv: port name...
// What looks like a number is for inet_aton to understand, as libc does.
#include "../../escape/programs/attempt.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

static int knock(const struct addrinfo* to) {
  int fd = socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  int result = connect(fd, to->ai_addr, to->ai_addrlen);
  if (result < 0 && errno == EINPROGRESS) {
    struct pollfd ready = {fd, POLLOUT, 0};
    int err = ETIMEDOUT;
    socklen_t length = sizeof err;
    if (poll(&ready, 1, 2000) == 1) getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &length);
    result = err ? -1 : 0;
    errno = err;
  }
  // A relay may accept before the other side has: only an answer proves that it was reached.
  char answer[64];
  struct pollfd ready = {fd, POLLIN, 0};
  if (result == 0) result = send(fd, "knock\n", 6, MSG_NOSIGNAL);
  if (result > 0 && poll(&ready, 1, 2000) != 1) result = -1, errno = ETIMEDOUT;
  if (result > 0 && (result = recv(fd, answer, sizeof answer, 0)) == 0) result = -1, errno = EPIPE;
  int err = errno;
  close(fd);
  errno = err;
  return result;
}

int main(int argc, char** argv) {
  const char* port = argument(argc, argv, 1);
  for (int i = 2; i < argc; ++i) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    if (getaddrinfo(argv[i], port, &hints, &found) != 0) {
      stopped_by(argv[i], "no-such-name");
      continue;
    }
    int result = -1, err = 0;
    for (struct addrinfo* each = found; each != NULL && result < 0; each = each->ai_next) {
      result = knock(each);
      err = errno;
    }
    errno = err;
    attempt(argv[i], result);
    freeaddrinfo(found);
  }
  return done();
}
