// Uses processor time, ignoring the polite signal. argv: seconds, and how: alone, in
// children (one after the other, each for a short time), or in children that nobody
// waits for.
#include "attempt.h"

#include <time.h>

static long used_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void use(long ms) {
  while (used_ms() < ms) {
  }
}

int main(int argc, char** argv) {
  enum { kEach = 400 };
  long ms = atol(argument(argc, argv, 1)) * 1000;
  const char* how = argument(argc, argv, 2);
  signal(SIGXCPU, SIG_IGN);
  if (strcmp(how, "alone") == 0) {
    use(ms);
  } else {
    if (strcmp(how, "children_left") == 0) signal(SIGCHLD, SIG_IGN);
    for (long had = 0; had < ms; had += kEach) {
      int ended[2];
      if (pipe(ended) < 0) return 1;
      pid_t child = fork();
      if (child == 0) {
        use(kEach);
        _exit(0);
      }
      close(ended[1]);
      char none;
      if (child < 0 || read(ended[0], &none, 1) != 0) return 1;
      close(ended[0]);
      if (strcmp(how, "children") == 0) waitpid(child, NULL, 0);
    }
  }
  escaped("cpu");
  return done();
}
