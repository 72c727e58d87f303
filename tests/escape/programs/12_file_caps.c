// Gives a program of ours file capabilities, for someone outside to run.
#include "attempt.h"

#include <linux/capability.h>
#include <sys/xattr.h>

int main(void) {
  const struct vfs_cap_data caps = {
      .magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE,
      .data[0].permitted = 1u << CAP_SETUID,
  };
  int fd = open("capable", O_WRONLY | O_CREAT, 0755);
  attempt("setxattr", setxattr("capable", "security.capability", &caps, sizeof caps, 0));
  attempt("fsetxattr", fsetxattr(fd, "security.capability", &caps, sizeof caps, 0));
  return done();
}
