// Uses descriptors that the caller forgot to close. argv: a path below the
// directory that one of them may be.
#include "attempt.h"

int main(int argc, char** argv) {
  const char* below = argument(argc, argv, 1);
  bool any = false;
  bool read_through = false;
  for (int fd = 3; fd < 1024; ++fd) {
    struct stat st;
    if (fstat(fd, &st) < 0) continue;
    any = true;
    printf("open %d mode %o\n", fd, st.st_mode);
    char text[256] = {0};
    int file = openat(fd, below, O_RDONLY);
    if (file >= 0 && read(file, text, sizeof text - 1) > 0) {
      read_through = true;
      printf("%s\n", text);
    }
  }
  if (any) {
    escaped("inherited");
  } else {
    stopped("inherited", EBADF);
  }
  if (read_through) {
    escaped("read_through");
  } else {
    stopped("read_through", EBADF);
  }
  return done();
}
