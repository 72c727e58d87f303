// Calls that ordinary programs do not need. None is made in earnest: where it would
// change the machine, an argument makes the kernel refuse after it has let us in.
#include "attempt.h"

#include <linux/perf_event.h>
#include <sys/klog.h>
#include <sys/time.h>
#include <sys/timex.h>

#ifndef SYS_fanotify_init
#define SYS_fanotify_init 300
#endif

int main(void) {
  unsigned char zero[128] = {0};
  attempt_harmless("bpf", syscall(SYS_bpf, 11 /* PROG_GET_NEXT_ID */, zero, sizeof zero), ENOENT);
  struct perf_event_attr perf = {.type = PERF_TYPE_SOFTWARE,
                                 .size = sizeof perf,
                                 .config = PERF_COUNT_SW_TASK_CLOCK,
                                 .exclude_kernel = 1};
  attempt("perf_event_open", syscall(SYS_perf_event_open, &perf, 0, -1, -1, 0));
  attempt("userfaultfd", syscall(SYS_userfaultfd, 0));
  attempt("userfaultfd_user_mode", syscall(SYS_userfaultfd, 1));
  attempt_harmless("kexec_load", syscall(SYS_kexec_load, 0, 0, NULL, 0xffff0000), EINVAL);
  attempt_harmless("kexec_file_load", syscall(SYS_kexec_file_load, -1, -1, 0, NULL, 0xff00),
                   EINVAL);
  attempt_harmless("init_module", syscall(SYS_init_module, NULL, 1, ""), ENOEXEC);
  attempt_harmless("finit_module", syscall(SYS_finit_module, -1, "", 0), EBADF);
  attempt_harmless("delete_module", syscall(SYS_delete_module, "belljar_no_such", 0x800), ENOENT);
  attempt_harmless("quotactl", syscall(SYS_quotactl, 0x800004 << 8, "/nonexistent", 0, NULL),
                   ENOENT);
  attempt("syslog", klogctl(10 /* SIZE_BUFFER */, NULL, 0));
  attempt_harmless("swapon", syscall(SYS_swapon, "/nonexistent", 0), ENOENT);
  attempt_harmless("swapoff", syscall(SYS_swapoff, "/nonexistent"), ENOENT);
  attempt_harmless("reboot", syscall(SYS_reboot, 0, 0, 0, NULL), EINVAL);
  attempt("settimeofday", syscall(SYS_settimeofday, NULL, NULL));
  attempt_harmless("clock_settime", syscall(SYS_clock_settime, 0, NULL), EFAULT);
  struct timex tick = {.modes = ADJ_TICK, .tick = 0};
  attempt_harmless("adjtimex", syscall(SYS_adjtimex, &tick), EINVAL);
  attempt_harmless("clock_adjtime", syscall(SYS_clock_adjtime, 0, &tick), EINVAL);
  attempt_harmless("acct", syscall(SYS_acct, "/nonexistent"), ENOENT);
  attempt_harmless("sethostname", syscall(SYS_sethostname, "", -1), EINVAL);
  attempt_harmless("setdomainname", syscall(SYS_setdomainname, "", -1), EINVAL);
  attempt_harmless("open_by_handle_at", syscall(SYS_open_by_handle_at, AT_FDCWD, NULL, 0), EFAULT);
  attempt("fanotify_init", syscall(SYS_fanotify_init, 0, 0));
  attempt("add_key", syscall(SYS_add_key, "user", "belljar-escape", "x", 1, -1));
  attempt_harmless("request_key", syscall(SYS_request_key, "user", "belljar-none", NULL, 0),
                   ENOKEY);
  attempt("keyctl", syscall(SYS_keyctl, 0 /* GET_KEYRING_ID */, -3, 0));
#if defined(__x86_64__)
  attempt("iopl", syscall(SYS_iopl, 0));
  attempt("ioperm", syscall(SYS_ioperm, 0x80, 1, 0));
#endif
  return done();
}
