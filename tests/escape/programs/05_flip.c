// Exchanges two names for as long as it may live, so that a path leads elsewhere between
// one look and the next.
#include "attempt.h"

#include <time.h>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const time_t end = time(NULL) + 20;
  while (time(NULL) < end) {
    renameat2(AT_FDCWD, argv[1], AT_FDCWD, argv[2], RENAME_EXCHANGE);
    usleep(100);
  }
  return done();
}
