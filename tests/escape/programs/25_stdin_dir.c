// Standard input is a directory outside: walks from it. argv: a path below it.
// Landlock stops the opening, but not the looking and the changing of modes.
#include "attempt.h"

static void look(const char* what, int fd) {
  char text[256] = {0};
  ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
  if (attempt(what, n)) printf("%s\n", text);
}

int main(int argc, char** argv) {
  const char* below = argument(argc, argv, 1);
  char path[4096];
  look("openat", openat(0, below, O_RDONLY));
  snprintf(path, sizeof path, "/proc/self/fd/0/%s", below);
  look("proc_fd", open(path, O_RDONLY));
  snprintf(path, sizeof path, "/dev/stdin/%s", below);
  look("dev_stdin", open(path, O_RDONLY));
  struct stat st;
  attempt("stat", fstatat(0, below, &st, 0));
  attempt("chmod", syscall(SYS_fchmodat, 0, below, 0640));
  attempt("times", utimensat(0, below, NULL, 0));
  char entries[4096];
  attempt("list", syscall(SYS_getdents64, 0, entries, sizeof entries));
  if (attempt("fchdir", fchdir(0))) look("after_fchdir", open(below, O_RDONLY));
  return done();
}
