// Reads each path given and prints what was in it.
#include "attempt.h"

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    char what[32];
    char text[4096];
    snprintf(what, sizeof what, "read#%d", i);
    int fd = open(argv[i], O_RDONLY | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (attempt(what, n)) printf("%.*s\n", (int)n, text);
    if (fd >= 0) close(fd);
  }
  return done();
}
