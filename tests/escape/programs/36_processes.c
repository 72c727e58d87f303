// Has as many processes, or threads, as it can at the same time. argv: processes|
// threads, how many to want, how many to call an escape.
#include "attempt.h"

#include <pthread.h>

static void* wait_here(void* unused) {
  (void)unused;
  sleep(20);
  return NULL;
}

int main(int argc, char** argv) {
  bool threads = strcmp(argument(argc, argv, 1), "threads") == 0;
  int wanted = atoi(argument(argc, argv, 2));
  int too_many = atoi(argument(argc, argv, 3));
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 64 * 1024);
  int had = 0;
  int err = 0;
  setpgid(0, 0);
  for (; had < wanted; ++had) {
    if (threads) {
      pthread_t thread;
      err = pthread_create(&thread, &small, wait_here, NULL);
      if (err) break;
    } else {
      pid_t child = fork();
      if (child == 0) wait_here(NULL), _exit(0);
      if (child < 0) {
        err = errno;
        break;
      }
    }
  }
  printf("had %d\n", had);
  if (had >= too_many) {
    escaped("bomb");
  } else {
    stopped("bomb", err);
  }
  done();
  fflush(stdout);
  signal(SIGTERM, SIG_IGN);
  kill(0, SIGTERM);
  _exit(0);
}
