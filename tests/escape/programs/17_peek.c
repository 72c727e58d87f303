// Reads, traces and bends a process outside. argv: its pid as the host numbers it,
// the address of a text in it and the text's length.
#include "attempt.h"

#include <linux/kcmp.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>

int main(int argc, char** argv) {
  pid_t target = atoi(argument(argc, argv, 1));
  uintptr_t address = strtoull(argument(argc, argv, 2), NULL, 16);
  size_t length = strtoul(argument(argc, argv, 3), NULL, 10);
  char text[256] = {0};
  struct iovec mine = {text, length};
  struct iovec theirs = {(void*)address, length};

  if (attempt("process_vm_readv", process_vm_readv(target, &mine, 1, &theirs, 1, 0))) {
    printf("read %s\n", text);
  }
  attempt("process_vm_writev", process_vm_writev(target, &mine, 1, &theirs, 1, 0));
  if (attempt("ptrace_seize", ptrace(PTRACE_SEIZE, target, NULL, NULL))) {
    ptrace(PTRACE_INTERRUPT, target, NULL, NULL);  // only what is stopped can be let go
    waitpid(target, NULL, 0);
    ptrace(PTRACE_DETACH, target, NULL, NULL);
  }
  if (attempt("ptrace_attach", ptrace(PTRACE_ATTACH, target, NULL, NULL))) {
    waitpid(target, NULL, 0);
    ptrace(PTRACE_DETACH, target, NULL, NULL);
  }
  int pidfd = syscall(SYS_pidfd_open, target, 0);
  attempt("pidfd_open", pidfd);
  attempt("pidfd_getfd", syscall(SYS_pidfd_getfd, pidfd, 0, 0));
  attempt("kcmp", syscall(SYS_kcmp, getpid(), target, KCMP_VM, 0, 0));
  struct rlimit limit;
  attempt("prlimit", prlimit(target, RLIMIT_NOFILE, NULL, &limit));
  attempt("setpriority", setpriority(PRIO_PROCESS, target, 10));
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(0, &cpus);
  attempt("sched_setaffinity", sched_setaffinity(target, sizeof cpus, &cpus));
  attempt("move_pages", syscall(SYS_move_pages, target, 0, NULL, NULL, NULL, 0));
  struct iovec page = {(void*)(address & ~(uintptr_t)4095), 4096};
  attempt("process_madvise", syscall(440, pidfd, &page, 1, 20 /* MADV_COLD */, 0));
  return done();
}
