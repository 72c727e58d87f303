// Appends to each path given, creating it where it is not there.
#include "attempt.h"

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    char what[32];
    snprintf(what, sizeof what, "write#%d", i);
    int fd = open(argv[i], O_WRONLY | O_CREAT | O_APPEND, 0666);
    attempt(what, fd < 0 ? -1 : write(fd, "tampered\n", 9));
    if (fd >= 0) close(fd);
  }
  return done();
}
