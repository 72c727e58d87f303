// Uses processor time, ignoring the polite signal. argv: seconds.
#include "attempt.h"

#include <time.h>

static long used_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int main(int argc, char** argv) {
  long seconds = atol(argument(argc, argv, 1));
  signal(SIGXCPU, SIG_IGN);
  while (used_ms() < seconds * 1000) {
  }
  escaped("cpu");
  return done();
}
