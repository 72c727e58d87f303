// Leaves processes behind in every way a process can be left behind, each of which
// writes to a file of its own ten times a second, for at most 30 seconds. Prints
// `ready` when all are there, then waits. argv: a mark for the command line.
#include "attempt.h"

#include <sys/prctl.h>
#include <time.h>

static void beat(const char* name) {
  struct timespec tick = {0, 100 * 1000 * 1000};
  int fd = open(name, O_WRONLY | O_CREAT | O_APPEND, 0666);
  for (int i = 0; i < 300; ++i) {
    if (write(fd, ".", 1) < 0) _exit(1);
    nanosleep(&tick, NULL);
  }
  _exit(0);
}

int main(int argc, char** argv) {
  argument(argc, argv, 1);
  if (fork() == 0) beat("beat-child");
  if (fork() == 0) {
    setsid();
    if (fork() == 0) beat("beat-double-forked");
    _exit(0);
  }
  if (fork() == 0) {
    for (int s = 1; s < 64; ++s) signal(s, SIG_IGN);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, 0);
    beat("beat-ignores-signals");
  }
  if (fork() == 0) {
    setpgid(0, 0);
    // Stopped until a minute later someone looks: it shows as a process, not as a beat.
    if (fork() == 0) {
      setsid();
      raise(SIGSTOP);
    }
    beat("beat-parent-of-stopped");
  }
  wait(NULL);
  usleep(300 * 1000);
  puts("ready");
  fflush(stdout);
  sleep(30);
  return 0;
}
