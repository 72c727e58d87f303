// The newer calls that change what paths mean, as root in a mount namespace of its
// own for the control.
#include "attempt.h"

#include <linux/mount.h>

#define NR_open_tree 428
#define NR_move_mount 429
#define NR_fsopen 430
#define NR_fsconfig 431
#define NR_fsmount 432
#define NR_fspick 433
#define NR_mount_setattr 442
#define NR_open_tree_attr 467

int main(void) {
  mkdir("point", 0777);
  int tree = syscall(NR_open_tree, AT_FDCWD, ".", OPEN_TREE_CLONE);
  attempt("open_tree", tree);
  attempt("open_tree_attr", syscall(NR_open_tree_attr, AT_FDCWD, ".", OPEN_TREE_CLONE, 0, 0));
  attempt("move_mount", syscall(NR_move_mount, tree, "", AT_FDCWD, "point", 4));
  int context = syscall(NR_fsopen, "tmpfs", 0);
  attempt("fsopen", context);
  attempt("fsconfig", syscall(NR_fsconfig, context, 6 /* create */, NULL, NULL, 0));
  attempt("fsmount", syscall(NR_fsmount, context, 0, 0));
  attempt("fspick", syscall(NR_fspick, AT_FDCWD, "point", 0));
  struct mount_attr attr = {.attr_clr = 1 /* MOUNT_ATTR_RDONLY */};
  attempt("mount_setattr", syscall(NR_mount_setattr, AT_FDCWD, "point", 0, &attr, sizeof attr));
  struct mount_attr usr = {.attr_clr = 1};
  attempt_harmless("mount_setattr_usr",
                   syscall(NR_mount_setattr, AT_FDCWD, "/usr", 0, &usr, sizeof usr), EINVAL);
  return done();
}
