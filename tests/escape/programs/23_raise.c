// Takes more of the machine than was given.
#include "attempt.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>

static int which;
static long raise_limit(void) {
  struct rlimit limit;
  if (getrlimit(which, &limit) < 0) return -1;
  // Unlimited already: lower it first, so that there is something to raise.
  if (limit.rlim_max == RLIM_INFINITY) {
    limit.rlim_cur = limit.rlim_max = 1 << 30;
    if (setrlimit(which, &limit) < 0) return -1;
  }
  limit.rlim_max += 1;
  struct rlimit after;
  if (setrlimit(which, &limit) < 0 || getrlimit(which, &after) < 0) return -1;
  errno = EPERM;
  return after.rlim_max == limit.rlim_max ? 0 : -1;
}
static long fifo(void) {
  return sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1});
}
static long round_robin(void) {
  return sched_setscheduler(0, SCHED_RR, &(struct sched_param){.sched_priority = 1});
}
static long negative_nice(void) { return setpriority(PRIO_PROCESS, 0, -5); }
static long write_text(const char* path, const char* text) {
  int fd = open(path, O_WRONLY);
  return fd < 0 ? -1 : write(fd, text, strlen(text));
}
static long oom_score(void) { return write_text("/proc/self/oom_score_adj", "-500"); }
static long locked_memory(void) {
  size_t size = 64 << 20;
  void* memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? -1 : mlock(memory, size);
}
static long realtime_io(void) { return syscall(SYS_ioprio_set, 1, 0, 1 << 13); }

int main(void) {
  static const struct {
    const char* name;
    int which;
  } kLimits[] = {{"nofile", RLIMIT_NOFILE}, {"nproc", RLIMIT_NPROC}, {"data", RLIMIT_DATA},
                 {"cpu", RLIMIT_CPU},       {"fsize", RLIMIT_FSIZE}, {"core", RLIMIT_CORE}};
  for (size_t i = 0; i < sizeof kLimits / sizeof *kLimits; ++i) {
    which = kLimits[i].which;
    attempt_in_child(kLimits[i].name, raise_limit);
  }
  attempt_in_child("sched_fifo", fifo);
  attempt_in_child("sched_rr", round_robin);
  attempt_in_child("negative_nice", negative_nice);
  attempt_in_child("oom_score_adj", oom_score);
  attempt_in_child("mlock", locked_memory);
  attempt_in_child("ioprio_realtime", realtime_io);
  return done();
}
