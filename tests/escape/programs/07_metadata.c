// Changes what is known about a file that may only be read: Landlock does not
// look at these calls. argv: the file.
#include "attempt.h"

#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <utime.h>

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
#define SYS_setxattrat_ 463

int main(int argc, char** argv) {
  const char* file = argument(argc, argv, 1);
  int fd = open(file, O_RDONLY);
  int path_fd = open(file, O_PATH);
  char magic[64];
  snprintf(magic, sizeof magic, "/proc/self/fd/%d", path_fd);

  attempt("chmod", chmod(file, 0640));
  attempt("fchmod", fchmod(fd, 0641));
  attempt("fchmodat", syscall(SYS_fchmodat, AT_FDCWD, file, 0642));
  attempt("fchmodat2", syscall(SYS_fchmodat2, AT_FDCWD, file, 0643, 0));
  attempt("chmod_magic_link", chmod(magic, 0644));
  attempt("chown", chown(file, getuid(), getgid()));
  attempt("fchown", fchown(fd, getuid(), getgid()));
  attempt("lchown", lchown(file, getuid(), getgid()));
  attempt("fchownat", fchownat(path_fd, "", getuid(), getgid(), AT_EMPTY_PATH));
  attempt("utime", utime(file, &(struct utimbuf){11, 11}));
  attempt("utimes", utimes(file, (struct timeval[2]){{12, 0}, {12, 0}}));
  attempt("utimensat", utimensat(AT_FDCWD, file, (struct timespec[2]){{13, 0}, {13, 0}}, 0));
  attempt("futimens", futimens(fd, (struct timespec[2]){{14, 0}, {14, 0}}));
  attempt("setxattr", setxattr(file, "user.belljar", "x", 1, 0));
  attempt("lsetxattr", lsetxattr(file, "user.belljar", "y", 1, 0));
  attempt("fsetxattr", fsetxattr(fd, "user.belljar", "z", 1, 0));
  const struct {
    uint64_t value;
    uint32_t size;
    uint32_t flags;
  } args = {(uintptr_t)"w", 1, 0};
  attempt("setxattrat",
          syscall(SYS_setxattrat_, AT_FDCWD, file, 0, "user.belljar", &args, sizeof args));
  attempt("removexattr", removexattr(file, "user.belljar"));
  int flags = 0;
  ioctl(fd, FS_IOC_GETFLAGS, &flags);
  flags |= FS_NODUMP_FL;
  attempt("setflags", ioctl(fd, FS_IOC_SETFLAGS, &flags));
  return done();
}
