// Makes empty files until told to stop. argv: directory, made if need be, how many.
#include "attempt.h"

int main(int argc, char** argv) {
  mkdir(argument(argc, argv, 1), 0755);
  int dir = open(argument(argc, argv, 1), O_RDONLY | O_DIRECTORY);
  long count = atol(argument(argc, argv, 2));
  char name[32];
  for (long i = 0; i < count; ++i) {
    snprintf(name, sizeof name, "n%ld", i);
    int fd = openat(dir, name, O_WRONLY | O_CREAT, 0644);
    if (fd < 0) {
      int err = errno;
      printf("made %ld\n", i);
      stopped("inodes", err);
      return done();
    }
    close(fd);
  }
  sleep(1);
  escaped("inodes");
  return done();
}
