// Signals a process outside. argv: how, its pid and process group as the host
// numbers them. `everyone` sends SIGURG, which nobody dies of: the process outside
// notes it.
#include "attempt.h"

static pid_t target;
static pid_t group;

static long by_kill(void) { return kill(target, SIGKILL); }
static long by_tgkill(void) { return syscall(SYS_tgkill, target, target, SIGKILL); }
static long by_tkill(void) { return syscall(SYS_tkill, target, SIGKILL); }
static long by_pidfd(void) {
  int fd = syscall(SYS_pidfd_open, target, 0);
  return fd < 0 ? -1 : syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
}
static long by_queue(void) {
  siginfo_t info = {.si_signo = SIGKILL, .si_code = SI_QUEUE};
  return syscall(SYS_rt_sigqueueinfo, target, SIGKILL, &info);
}
static long by_group(void) { return kill(-group, SIGKILL); }
// No number at all: the caller's own group, if we were left in it.
static long own_group(void) {
  signal(SIGURG, SIG_IGN);
  return kill(0, SIGURG);
}
static long own_group_kill(void) {
  if (fork() == 0) return kill(0, SIGKILL);
  for (;;) pause();
}
static long everyone(void) {
  signal(SIGURG, SIG_IGN);
  return kill(-1, SIGURG);
}
// The kernel sends it for us when the pipe has something to read.
static long by_async_io(void) {
  int ends[2];
  if (pipe(ends) < 0) return -1;
  if (fcntl(ends[0], F_SETOWN, target) < 0) return -1;
  if (fcntl(ends[0], F_SETSIG, SIGKILL) < 0) return -1;
  if (fcntl(ends[0], F_SETFL, O_ASYNC) < 0) return -1;
  return write(ends[1], "x", 1);
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    long (*deed)(void);
  } kWays[] = {
      {"by_kill", by_kill},     {"by_tgkill", by_tgkill},
      {"by_tkill", by_tkill},   {"by_pidfd", by_pidfd},
      {"by_queue", by_queue},   {"by_group", by_group},
      {"own_group", own_group}, {"own_group_kill", own_group_kill},
      {"everyone", everyone},   {"by_async_io", by_async_io},
  };
  const char* how = argument(argc, argv, 1);
  target = atoi(argument(argc, argv, 2));
  group = atoi(argument(argc, argv, 3));
  for (size_t i = 0; i < sizeof kWays / sizeof *kWays; ++i) {
    if (strcmp(how, kWays[i].name) == 0) {
      attempt(how, kWays[i].deed());
      return done();
    }
  }
  return 99;
}
