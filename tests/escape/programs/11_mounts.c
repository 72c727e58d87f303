// Every call that changes what paths mean. The control runs this as root in a
// mount namespace of its own, so that it may be done in earnest.
#include "attempt.h"

#include <linux/mount.h>

int main(void) {
  mkdir("point", 0777);
  mkdir("source", 0777);
  attempt("mount_tmpfs", syscall(SYS_mount, "none", "point", "tmpfs", 0, ""));
  attempt("mount_proc", syscall(SYS_mount, "none", "point", "proc", 0, ""));
  attempt("mount_bind", syscall(SYS_mount, "source", "point", NULL, 4096, NULL));
  attempt("mount_remount", syscall(SYS_mount, NULL, "point", NULL, 32 | 4096, NULL));
  attempt("mount_move", syscall(SYS_mount, "point", "source", NULL, 8192, NULL));
  attempt("mount_private", syscall(SYS_mount, NULL, "/", NULL, 1 << 18, NULL));
  // Any answer but EPERM and ENOSYS would mean that the call was let in.
  attempt_harmless("umount2", syscall(SYS_umount2, "/", 0), EBUSY);
  attempt_harmless("umount_usr", syscall(SYS_umount2, "/usr", 2), EINVAL);
  attempt_harmless("pivot_root", syscall(SYS_pivot_root, ".", "."), EBUSY);
  attempt("chroot", chroot("."));
  return done();
}
