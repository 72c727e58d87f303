// Takes inotify instances, which are counted for a user and not for a process. argv: how many.
#include "attempt.h"

#include <sys/inotify.h>

int main(int argc, char** argv) {
  int wanted = atoi(argument(argc, argv, 1));
  int had = 0;
  while (had < wanted && inotify_init1(IN_CLOEXEC) >= 0) ++had;
  attempt("watches", had < wanted ? -1 : 0);
  return done();
}
