// Opens for writing what steers the whole machine; nothing is written. Then opens
// for reading what tells about it.
#include "attempt.h"

int main(void) {
  static const char* const kSteer[] = {"/proc/sys/kernel/core_pattern",
                                       "/proc/sys/kernel/modprobe",
                                       "/proc/sys/vm/overcommit_memory",
                                       "/proc/sys/fs/binfmt_misc/register",
                                       "/proc/sys/kernel/hostname",
                                       "/proc/sys/net/ipv4/ip_forward",
                                       "/proc/sysrq-trigger",
                                       "/proc/irq/default_smp_affinity",
                                       "/proc/mtrr",
                                       "/sys/kernel/mm/transparent_hugepage/enabled",
                                       "/sys/kernel/uevent_helper",
                                       "/sys/power/state",
                                       "/sys/fs/cgroup/cgroup.procs",
                                       "/sys/fs/cgroup/unified/cgroup.procs",
                                       "/sys/fs/cgroup/memory/cgroup.procs",
                                       "/sys/fs/cgroup/memory/release_agent"};
  for (size_t i = 0; i < sizeof kSteer / sizeof *kSteer; ++i) {
    int fd = open(kSteer[i], O_WRONLY);
    attempt(kSteer[i], fd);
    if (fd >= 0) close(fd);
  }
  static const char* const kTell[] = {"/proc/kcore",
                                      "/proc/kmsg",
                                      "/proc/kpagecount",
                                      "/proc/vmallocinfo",
                                      "/proc/slabinfo",
                                      "/proc/timer_list",
                                      "/sys/kernel/debug/sleep_time",
                                      "/sys/kernel/tracing/trace"};
  for (size_t i = 0; i < sizeof kTell / sizeof *kTell; ++i) {
    int fd = open(kTell[i], O_RDONLY | O_NONBLOCK);
    // Containers cover some of them with /dev/null, which tells nothing.
    struct stat info;
    if (fd >= 0 && fstat(fd, &info) == 0 && S_ISCHR(info.st_mode)) {
      close(fd);
      fd = -1;
      errno = ENODEV;
    }
    attempt(kTell[i], fd);
    if (fd >= 0) close(fd);
  }
  if (attempt("cgroup_mkdir", mkdir("/sys/fs/cgroup/memory/belljar-escape", 0755))) {
    rmdir("/sys/fs/cgroup/memory/belljar-escape");
  }
  return done();
}
