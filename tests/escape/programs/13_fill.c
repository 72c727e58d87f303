// Writes megabytes into one file, or into many. argv: directory, made if need be,
// megabytes, files.
#include "attempt.h"

int main(int argc, char** argv) {
  const char* dir = argument(argc, argv, 1);
  long megabytes = atol(argument(argc, argv, 2));
  long files = atol(argument(argc, argv, 3));
  static char block[1 << 20];
  signal(SIGXFSZ, SIG_IGN);
  mkdir(dir, 0755);
  memset(block, 'x', sizeof block);
  long written = 0;
  int err = 0;
  char path[4096];
  for (long f = 0; f < files && !err; ++f) {
    snprintf(path, sizeof path, "%s/filler-%ld", dir, f);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd < 0) err = errno;
    for (long m = 0; m < megabytes / files && !err; ++m) {
      if (write(fd, block, sizeof block) == (ssize_t)sizeof block) {
        ++written;
      } else {
        err = errno ? errno : ENOSPC;
      }
    }
    if (fd >= 0) close(fd);
  }
  printf("wrote %ld MB\n", written);
  // What only looks at it from time to time gets its chance.
  if (!err) sleep(1);
  if (err) {
    stopped("fill", err);
  } else {
    escaped("fill");
  }
  return done();
}
