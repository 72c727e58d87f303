// New namespaces give new capabilities, and with them the kernel's whole surface.
#include "attempt.h"

#include <linux/sched.h>
#include <sched.h>

static const struct {
  const char* name;
  unsigned long flag;
  const char* file;
} kKinds[] = {
    {"user", CLONE_NEWUSER, "user"},       {"mount", CLONE_NEWNS, "mnt"},
    {"pid", CLONE_NEWPID, "pid"},          {"net", CLONE_NEWNET, "net"},
    {"ipc", CLONE_NEWIPC, "ipc"},          {"uts", CLONE_NEWUTS, "uts"},
    {"cgroup", CLONE_NEWCGROUP, "cgroup"}, {"time", CLONE_NEWTIME, "time"},
};
static unsigned long flag;
static const char* file;

static long by_unshare(void) { return unshare(flag); }
static long by_clone(void) {
  long child = syscall(SYS_clone, flag | SIGCHLD, NULL, NULL, NULL, NULL);
  if (child == 0) _exit(0);
  return child;
}
// Flags are 64 bits wide in a register, whatever the C prototype says.
static long by_clone3(void) {
  struct clone_args args = {.flags = flag, .exit_signal = SIGCHLD};
  long child = syscall(SYS_clone3, &args, sizeof args);
  if (child == 0) _exit(0);
  return child;
}
static long by_setns(void) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/ns/%s", getppid(), file);
  int fd = open(path, O_RDONLY);
  if (fd < 0) return -1;
  return setns(fd, 0);
}

int main(void) {
  for (size_t i = 0; i < sizeof kKinds / sizeof *kKinds; ++i) {
    char what[64];
    flag = kKinds[i].flag;
    file = kKinds[i].file;
    snprintf(what, sizeof what, "unshare_%s", kKinds[i].name);
    attempt_in_child(what, by_unshare);
    if (flag != CLONE_NEWTIME) {  // clone has no room for this one: it reads as a signal
      snprintf(what, sizeof what, "clone_%s", kKinds[i].name);
      attempt_in_child(what, by_clone);
    }
    snprintf(what, sizeof what, "clone3_%s", kKinds[i].name);
    attempt_in_child(what, by_clone3);
    // A process may not join the user namespace it is in already, even as root.
    if (flag == CLONE_NEWUSER) continue;
    snprintf(what, sizeof what, "setns_%s", kKinds[i].name);
    attempt_in_child(what, by_setns);
  }
  return done();
}
