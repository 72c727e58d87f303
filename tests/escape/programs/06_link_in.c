// Brings an outside file into the tree that may be written, under a name that may
// be written, or puts one of ours in its place. argv: how, the outside file.
#include "attempt.h"

#include <linux/fs.h>

static const char* outside;

static long put(const char* path) {
  int fd = open(path, O_WRONLY | O_APPEND | O_CREAT, 0666);
  return fd < 0 ? -1 : write(fd, "tampered\n", 9);
}
static long linked(void) { return link(outside, "in") < 0 ? -1 : put("in"); }
static long linked_from_fd(void) {
  int fd = open(outside, O_RDONLY);
  if (fd < 0) return -1;
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  if (linkat(AT_FDCWD, path, AT_FDCWD, "in", AT_SYMLINK_FOLLOW) < 0) return -1;
  return put("in");
}
static long moved_in(void) { return rename(outside, "in") < 0 ? -1 : put("in"); }
static long moved_over(void) {
  put("ours");
  return rename("ours", outside);
}
static long linked_out(void) {
  char beside[4096];
  put("ours");
  snprintf(beside, sizeof beside, "%s.planted", outside);
  return link("ours", beside);
}
static long exchanged(void) {
  put("ours");
  return syscall(SYS_renameat2, AT_FDCWD, "ours", AT_FDCWD, outside, RENAME_EXCHANGE);
}
static long symlinked(void) {
  if (symlink(outside, "in") < 0) return -1;
  return put("in");
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    long (*deed)(void);
  } kWays[] = {
      {"linked", linked},         {"linked_from_fd", linked_from_fd}, {"moved_in", moved_in},
      {"moved_over", moved_over}, {"linked_out", linked_out},         {"exchanged", exchanged},
      {"symlinked", symlinked},
  };
  const char* how = argument(argc, argv, 1);
  outside = argument(argc, argv, 2);
  for (size_t i = 0; i < sizeof kWays / sizeof *kWays; ++i) {
    if (strcmp(how, kWays[i].name) == 0) {
      attempt(how, kWays[i].deed());
      return done();
    }
  }
  return 99;
}
