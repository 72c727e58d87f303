// Keeps the process that would end us from running, in every way that the scheduler has, and
// fills a CPU beside it. argv: a mark for the command line; whom ("init": who adopts orphans here,
// "own": a child, which is what the control uses, or "own_alone", which spares the user's others);
// how many busy processes, for 30 seconds at most.
#include "attempt.h"

#include <linux/ioprio.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>

enum { kLowest = 19, kIdleIo = 3 << 13, kNobodyElse = 2000000123 };

static pid_t target;
static uid_t user;         // whose processes are slowed down together
static bool users = true;  // whether they are

// Root's control is another user's: slowing down "all processes of this user" is for it all of the
// machine, the kernel's own threads included.
static void be_user(void) {
  if (user != getuid() && setuid(user) < 0) _exit(1);
}

static pid_t adopter(void) {
  int ends[2];
  pid_t found = -1;
  if (pipe(ends) < 0) return -1;
  if (fork() == 0) {
    pid_t parent = getpid();
    if (fork() == 0) {
      while (getppid() == parent) usleep(1000);
      found = getppid();
      if (write(ends[1], &found, sizeof found) < 0) _exit(1);
    }
    _exit(0);
  }
  if (read(ends[0], &found, sizeof found) != sizeof found) found = -1;
  wait(NULL);
  return found;
}

static pid_t child(void) {
  int ready[2];
  char none;
  if (getuid() == 0) user = kNobodyElse;
  if (pipe(ready) < 0) return -1;
  pid_t pid = fork();
  if (pid == 0) {
    alarm(40);
    setpgid(0, 0);
    be_user();
    close(ready[0]);
    close(ready[1]);
    for (;;) pause();
  }
  close(ready[1]);
  if (read(ready[0], &none, 1) != 0) return -1;
  return pid;
}

static long set_attr(void) {
  // The C library's own header and the kernel's cannot be had together.
  struct {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
  } attr = {.size = sizeof attr, .policy = SCHED_IDLE};
  return syscall(SYS_sched_setattr, target, &attr, 0);
}

static long join_group(void) {
  return setpgid(0, getpgid(target)) < 0 ? -1 : setpriority(PRIO_PGRP, 0, kLowest);
}

static long lower_own_user(void) {
  be_user();
  return setpriority(PRIO_USER, 0, kLowest);
}

static cpu_set_t first_cpu(void) {
  cpu_set_t first;
  CPU_ZERO(&first);
  CPU_SET(0, &first);
  return first;
}

// What makes it slowest. The rest would slow the busy processes down too.
static void starve(void) {
  const struct sched_param none = {0};
  const cpu_set_t first = first_cpu();
  attempt("cpus", sched_setaffinity(target, sizeof first, &first));
  attempt("policy", sched_setscheduler(target, SCHED_IDLE, &none));
}

static void touch(void) {
  const struct sched_param none = {0};
  starve();
  attempt("policy_dirty_number",
          syscall(SYS_sched_setscheduler, 0x700000000 | (uint64_t)target, SCHED_IDLE, &none));
  attempt("parameters", sched_setparam(target, &none));
  attempt("attributes", set_attr());
  attempt("priority", setpriority(PRIO_PROCESS, target, kLowest));
  attempt("priority_group", setpriority(PRIO_PGRP, getpgid(target), kLowest));
  if (users) attempt("priority_user", setpriority(PRIO_USER, user, kLowest));
  if (users) attempt_in_child("priority_user_own", lower_own_user);
  attempt("io", syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, target, kIdleIo));
  attempt("io_group", syscall(SYS_ioprio_set, IOPRIO_WHO_PGRP, getpgid(target), kIdleIo));
  if (users) attempt("io_user", syscall(SYS_ioprio_set, IOPRIO_WHO_USER, user, kIdleIo));
  attempt_in_child("own_group_after_joining", join_group);
}

static void be_busy(void) {
  const cpu_set_t first = first_cpu();
  sched_setaffinity(0, sizeof first, &first);
  signal(SIGTERM, SIG_IGN);
  alarm(30);
  for (;;) continue;
}

int main(int argc, char** argv) {
  argument(argc, argv, 1);
  const int busy = atoi(argument(argc, argv, 3));
  users = strcmp(argument(argc, argv, 2), "own_alone") != 0;
  const bool own = strncmp(argv[2], "own", 3) == 0;
  user = getuid();
  target = own ? child() : adopter();
  busy > 0 ? starve() : touch();
  for (int i = 0; i < busy; ++i)
    if (fork() == 0) be_busy();
  done();
  fflush(stdout);
  if (busy > 0) sleep(30);
  if (own) kill(target, SIGKILL);
  return 0;
}
