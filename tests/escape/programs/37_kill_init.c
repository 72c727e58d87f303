// Ends the process that would end us, by signal and by a limit on its processor time, and
// waits for the time after. argv: a mark for the command line.
#include "attempt.h"

#include <sys/resource.h>

int main(int argc, char** argv) {
  argument(argc, argv, 1);
  if (fork() != 0) {
    sleep(10);
    return 0;
  }
  setsid();
  if (fork() != 0) _exit(0);
  usleep(300 * 1000);
  pid_t reaper = getppid();
  if (reaper != 1) {  // else the host's own, in the control
    struct rlimit none = {0, 0};
    attempt("by_limit", prlimit(reaper, RLIMIT_CPU, &none, NULL));
    for (int s = 1; s < 32; ++s) kill(reaper, s);
    attempt("by_signal", kill(reaper, SIGKILL));
  }
  close(1);  // so that nobody waits for our output
  close(2);
  sleep(10);
  return 0;
}
