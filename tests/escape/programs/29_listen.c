// Waits to be called from the host's network, a second and a half. argv: port.
#include "attempt.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

int main(int argc, char** argv) {
  struct sockaddr_in me = {.sin_family = AF_INET, .sin_port = htons(atoi(argument(argc, argv, 1)))};
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  int one = 1;
  if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  bool waits = fd >= 0 && bind(fd, (struct sockaddr*)&me, sizeof me) == 0 && listen(fd, 4) == 0;
  int err = errno;
  puts("ready");
  fflush(stdout);
  if (waits) {
    struct pollfd caller = {fd, POLLIN, 0};
    if (poll(&caller, 1, 1500) == 1) {
      attempt("called", accept(fd, NULL, NULL));
      return done();
    }
    err = ETIMEDOUT;
  }
  stopped("called", err);
  return done();
}
