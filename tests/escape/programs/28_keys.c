// Reads what a person types, from the background. argv: tty (take the terminal that this
// session has), stdin or stderr (leave the session, so that job control does not apply).
#include "attempt.h"

#include <poll.h>
#include <termios.h>

int main(int argc, char** argv) {
  const char* way = argument(argc, argv, 1);
  signal(SIGTTOU, SIG_IGN);
  signal(SIGTTIN, SIG_IGN);
  int fd = strcmp(way, "stderr") == 0 ? 2 : 0;
  if (strcmp(way, "tty") == 0) {
    fd = open("/dev/tty", O_RDWR);
    tcsetpgrp(fd, getpgrp());
  } else if (fork() != 0) {
    wait(NULL);
    return 0;
  } else {
    setsid();
  }
  puts("ready");
  fflush(stdout);
  struct pollfd typed = {fd, POLLIN, 0};
  poll(&typed, 1, 2000);
  char text[200] = "";
  ssize_t n = read(fd, text, sizeof text - 1);
  if (n > 0) printf("keys %.*s\n", (int)n, text);
  attempt("keys", n > 0 ? n : -1);
  return done();
}
