// Makes and opens device nodes. Expects `node`, a node for /dev/full made before.
#include "attempt.h"

#include <sys/sysmacros.h>

int main(void) {
  attempt("mknod_char", mknod("made-char", S_IFCHR | 0666, makedev(1, 7)));
  attempt("mknod_block", mknod("made-block", S_IFBLK | 0666, makedev(7, 0)));
  attempt("mknodat_char", mknodat(AT_FDCWD, "made-char-at", S_IFCHR | 0666, makedev(1, 7)));
  attempt("mknod_in_tmp", mknod("/tmp/belljar-made-char", S_IFCHR | 0666, makedev(1, 7)));
  unlink("/tmp/belljar-made-char");
  // A rename that leaves a character device 0:0 in the old place.
  close(open("made-whiteout", O_WRONLY | O_CREAT, 0644));
  attempt("whiteout", renameat2(AT_FDCWD, "made-whiteout", AT_FDCWD, "moved", RENAME_WHITEOUT));
  attempt("open_planted_node", open("node", O_RDONLY));

  // What a machine usually has; those that it lacks the control names too.
  static const char* const kNodes[] = {
      "/dev/kmsg", "/dev/loop-control", "/dev/loop0",        "/dev/fuse",   "/dev/kvm",
      "/dev/mem",  "/dev/port",         "/dev/tty0",         "/dev/uinput", "/dev/hwrng",
      "/dev/vcs",  "/dev/net/tun",      "/dev/btrfs-control"};
  for (size_t i = 0; i < sizeof kNodes / sizeof *kNodes; ++i) {
    int fd = open(kNodes[i], O_RDONLY | O_NONBLOCK | O_NOCTTY);
    attempt(kNodes[i], fd);
    if (fd >= 0) close(fd);
  }
  return done();
}
