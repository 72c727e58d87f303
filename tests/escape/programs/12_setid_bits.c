// Makes set-id programs for someone outside to run, by every call that takes a mode.
#include "attempt.h"

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif

static const char* fresh(const char* name) {
  int fd = open(name, O_WRONLY | O_CREAT, 0755);
  if (fd >= 0) close(fd);
  return name;
}

int main(void) {
  umask(0);
#ifdef SYS_chmod
  attempt("chmod", syscall(SYS_chmod, fresh("by-chmod"), 06755));
  attempt("chmod_uid_only", syscall(SYS_chmod, fresh("by-chmod-uid"), 04755));
  attempt("chmod_gid_only", syscall(SYS_chmod, fresh("by-chmod-gid"), 02755));
  // The kernel looks at the low bits only; so must a filter.
  attempt("chmod_high_bits", syscall(SYS_chmod, fresh("by-chmod-high"), 0xffff0000ull | 06755));
#endif
  attempt("fchmod", syscall(SYS_fchmod, open(fresh("by-fchmod"), O_RDONLY), 06755));
  attempt("fchmodat", syscall(SYS_fchmodat, AT_FDCWD, fresh("by-fchmodat"), 06755));
  attempt("fchmodat2", syscall(SYS_fchmodat2, AT_FDCWD, fresh("by-fchmodat2"), 06755, 0));
#ifdef SYS_open
  attempt("open", syscall(SYS_open, "by-open", O_CREAT | O_WRONLY, 06755));
  attempt("creat", syscall(SYS_creat, "by-creat", 06755));
#endif
  attempt("openat", syscall(SYS_openat, AT_FDCWD, "by-openat", O_CREAT | O_WRONLY, 06755));
  const struct {
    uint64_t flags, mode, resolve;
  } how = {O_CREAT | O_WRONLY, 06755, 0};
  attempt("openat2", syscall(SYS_openat2, AT_FDCWD, "by-openat2", &how, sizeof how));
  int nameless = syscall(SYS_openat, AT_FDCWD, ".", O_TMPFILE | O_WRONLY, 06755);
  if (attempt("tmpfile", nameless)) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", nameless);
    linkat(AT_FDCWD, path, AT_FDCWD, "by-tmpfile", AT_SYMLINK_FOLLOW);
  }
#ifdef SYS_mknod
  attempt("mknod", syscall(SYS_mknod, "by-mknod", S_IFREG | 06755, 0));
#endif
  attempt("mknodat", syscall(SYS_mknodat, AT_FDCWD, "by-mknodat", S_IFREG | 06755, 0));
  return done();
}
