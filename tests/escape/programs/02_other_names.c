// A hidden file, by every other name it might have. argv: its name in the working
// directory; the same as an absolute path. Expects a directory `a` beside it.
#include "attempt.h"

#include <linux/fs.h>

static const char kMark[] = "belljar-secret";

// Says whether the hidden text came out of `fd`, and shows it.
static void look(const char* what, int fd) {
  char text[256] = {0};
  int err = errno;
  ssize_t n = -1;
  if (fd >= 0) {
    n = read(fd, text, sizeof text - 1);
    err = errno;
    close(fd);
  }
  if (n > 0 && strstr(text, kMark)) {
    escaped(what);
    printf("%s\n", text);
  } else if (n >= 0) {
    stopped_by(what, "empty");
  } else {
    stopped(what, err);
  }
}

static void by_path(const char* what, const char* format, ...) {
  char path[8192];
  va_list args;
  va_start(args, format);
  vsnprintf(path, sizeof path, format, args);
  va_end(args);
  look(what, open(path, O_RDONLY | O_NONBLOCK));
}

int main(int argc, char** argv) {
  const char* name = argument(argc, argv, 1);
  const char* absolute = argument(argc, argv, 2);
  int here = open(".", O_RDONLY | O_DIRECTORY);
  int below = open("a", O_RDONLY | O_DIRECTORY);

  by_path("plain", "%s", name);
  by_path("absolute", "%s", absolute);
  by_path("dot_dot", "a/../%s", name);
  by_path("self_cwd", "/proc/self/cwd/%s", name);
  by_path("self_root", "/proc/self/root%s", absolute);
  by_path("thread_self_cwd", "/proc/thread-self/cwd/%s", name);
  by_path("dev_fd", "/dev/fd/%d/%s", here, name);
  by_path("self_fd_parent", "/proc/self/fd/%d/../%s", below, name);
  look("openat", openat(openat(below, "..", O_RDONLY | O_DIRECTORY), name, O_RDONLY));
  symlink(name, "made_link");
  by_path("symlink", "made_link");

  int path_fd = open(name, O_PATH);
  if (path_fd >= 0) by_path("reopened_path_fd", "/proc/self/fd/%d", path_fd);

  if (link(name, "made_hard_link") == 0) {
    by_path("hard_link", "made_hard_link");
    unlink("made_hard_link");
  } else {
    stopped("hard_link", errno);
  }
  if (rename("a", "b") == 0) {
    by_path("renamed_beside", "b/../%s", name);
    rename("b", "a");
  }
  if (rename(name, "moved") == 0) {
    by_path("renamed", "moved");
    rename("moved", name);
  } else {
    stopped("renamed", errno);
  }
  int other = open("other", O_WRONLY | O_CREAT, 0644);
  if (other >= 0) close(other);
  if (syscall(SYS_renameat2, AT_FDCWD, name, AT_FDCWD, "other", RENAME_EXCHANGE) == 0) {
    by_path("exchanged", "other");
    syscall(SYS_renameat2, AT_FDCWD, name, AT_FDCWD, "other", RENAME_EXCHANGE);
  } else {
    stopped("exchanged", errno);
  }
  // By number instead of by name: needs CAP_DAC_READ_SEARCH outside.
  struct {
    struct file_handle head;
    unsigned char bytes[128];
  } handle = {.head.handle_bytes = sizeof handle.bytes};
  int mount_id = 0;
  if (name_to_handle_at(AT_FDCWD, name, &handle.head, &mount_id, 0) == 0) {
    look("by_handle", open_by_handle_at(here, &handle.head, O_RDONLY));
  } else {
    stopped("by_handle", errno);
  }
  return done();
}
