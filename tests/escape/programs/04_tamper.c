// Tries to change what a path leads to, one way at a time. argv: how, the
// protected directory (relative), as in `.git/hooks`. The prize is a file
// `pre-commit` of ours at <directory>/pre-commit.
#include "attempt.h"

#include <linux/fs.h>
#include <sys/mount.h>
#include <sys/time.h>

static char hook[4096];
static const char* dir;
static char parent[4096];  // `.git` of `.git/hooks`
static char top[4096];     // the first component

static long put(const char* path) {
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0777);
  if (fd < 0) return -1;
  long n = write(fd, "#!/bin/sh\necho tampered\n", 24);
  close(fd);
  return n;
}

// Makes every directory on the way, then the hook.
static long put_all(const char* where) {
  char path[4096];
  for (const char* slash = strchr(where, '/'); slash; slash = strchr(slash + 1, '/')) {
    snprintf(path, sizeof path, "%.*s", (int)(slash - where), where);
    mkdir(path, 0777);
  }
  mkdir(where, 0777);
  snprintf(path, sizeof path, "%s/pre-commit", where);
  return put(path);
}

static long swap(const char* a, const char* b) {
  return syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE);
}

// A tree of ours, as deep below `evil` as the hooks are below `from`.
static void make_evil(const char* from) {
  char path[4096];
  snprintf(path, sizeof path, "evil%s", dir + strlen(from));
  put_all(path);
}

static long create(void) { return put_all(dir); }
static long truncated(void) { return truncate(hook, 0); }
static long appended(void) {
  int fd = open(hook, O_WRONLY | O_APPEND);
  return fd < 0 ? -1 : write(fd, "x", 1);
}
static long through_path_fd(void) {
  char again[64];
  int fd = open(hook, O_PATH);
  snprintf(again, sizeof again, "/proc/self/fd/%d", fd);
  return put(again);
}
static long through_root(void) {
  char again[8192];
  char cwd[4000];
  if (!getcwd(cwd, sizeof cwd)) return -1;
  snprintf(again, sizeof again, "/proc/self/root%s/%s", cwd, hook);
  return put(again);
}
static long unlinked(void) { return unlink(hook); }
static long moved_file(void) { return rename(hook, "stolen"); }
static long replaced_file(void) {
  put("evil-hook");
  return rename("evil-hook", hook);
}
static long exchanged_file(void) {
  put("evil-hook");
  return swap("evil-hook", hook);
}
static long moved_dir(void) {
  rename(dir, "away");
  return put_all(dir);
}
static long moved_parent(void) {
  rename(parent, "away");
  return put_all(dir);
}
static long moved_top(void) {
  rename(top, "away");
  return put_all(dir);
}
static long exchanged_dir(void) {
  make_evil(dir);
  return swap("evil", dir);
}
static long exchanged_parent(void) {
  make_evil(parent);
  return swap("evil", parent);
}
static long exchanged_top(void) {
  make_evil(top);
  return swap("evil", top);
}
static long renamed_over_parent(void) {
  make_evil(parent);
  rmdir(dir);
  rmdir(parent);
  return rename("evil", parent);
}
static long linked_parent(void) {
  make_evil(parent);
  if (rename(parent, "away") < 0 && unlink(parent) < 0 && errno != ENOENT) return -1;
  return symlink("evil", parent);
}
static long linked_dir(void) {
  make_evil(dir);
  if (rename(dir, "away") < 0 && rmdir(dir) < 0 && errno != ENOENT) return -1;
  return symlink("../evil", dir);
}
static long hard_link(void) {
  if (link(hook, "same-file") < 0) return -1;
  return put("same-file");
}
static long earlier_hard_link(void) { return put("linked-before"); }
static long mode(void) { return chmod(hook, 0700); }
static long times(void) { return utimes(hook, (struct timeval[2]){{1, 0}, {1, 0}}); }
static long mounted_over(void) {
  make_evil(dir);
  return mount("evil", dir, NULL, MS_BIND, NULL);
}
static long remounted(void) {
  mount(NULL, dir, NULL, MS_REMOUNT | MS_BIND, NULL);
  umount2(dir, MNT_DETACH);
  return put(hook);
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    long (*deed)(void);
  } kWays[] = {
      {"create", create},
      {"truncated", truncated},
      {"appended", appended},
      {"through_path_fd", through_path_fd},
      {"through_root", through_root},
      {"unlinked", unlinked},
      {"moved_file", moved_file},
      {"replaced_file", replaced_file},
      {"exchanged_file", exchanged_file},
      {"moved_dir", moved_dir},
      {"moved_parent", moved_parent},
      {"moved_top", moved_top},
      {"exchanged_dir", exchanged_dir},
      {"exchanged_parent", exchanged_parent},
      {"exchanged_top", exchanged_top},
      {"renamed_over_parent", renamed_over_parent},
      {"linked_parent", linked_parent},
      {"linked_dir", linked_dir},
      {"hard_link", hard_link},
      {"earlier_hard_link", earlier_hard_link},
      {"mode", mode},
      {"times", times},
      {"mounted_over", mounted_over},
      {"remounted", remounted},
  };
  const char* how = argument(argc, argv, 1);
  dir = argument(argc, argv, 2);
  snprintf(hook, sizeof hook, "%s/pre-commit", dir);
  const char* slash = strrchr(dir, '/');
  snprintf(parent, sizeof parent, "%.*s", slash ? (int)(slash - dir) : 1, slash ? dir : ".");
  slash = strchr(dir, '/');
  snprintf(top, sizeof top, "%.*s", slash ? (int)(slash - dir) : (int)strlen(dir), dir);
  for (size_t i = 0; i < sizeof kWays / sizeof *kWays; ++i) {
    if (strcmp(how, kWays[i].name) == 0) {
      attempt(how, kWays[i].deed());
      return done();
    }
  }
  return 99;
}
