// Standard input is a file outside, opened for reading only, and standard error
// one opened for appending only. Opens both again with more rights. A magic link
// does not ask the path, so a mount view alone does not stop this. Who may append may also
// empty what it appends to, by ftruncate: that was given away with the descriptor.
#include "attempt.h"

static void put(const char* what, const char* path) {
  int fd = open(path, O_WRONLY);
  attempt(what, fd < 0 ? -1 : write(fd, "tampered", 8));
}

static void get(const char* what, const char* path) {
  char text[256] = {0};
  int fd = open(path, O_RDONLY);
  if (attempt(what, fd < 0 ? -1 : read(fd, text, sizeof text - 1))) printf("%s\n", text);
}

int main(void) {
  put("write_proc_fd", "/proc/self/fd/0");
  put("write_dev_stdin", "/dev/stdin");
  put("write_dev_fd", "/dev/fd/0");
  get("read_stderr", "/proc/self/fd/2");
  attempt("truncate_stdin", truncate("/proc/self/fd/0", 0));
  return done();
}
