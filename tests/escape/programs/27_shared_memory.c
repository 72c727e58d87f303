// Finds memory and messages that the host shares by name. argv: System V key and
// segment id, a name for POSIX shared memory and for a message queue.
#include "attempt.h"

#include <mqueue.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

static long show_segment(int id) {
  if (id < 0) return -1;
  const char* text = shmat(id, NULL, SHM_RDONLY);
  if (text == (void*)-1) return -1;
  printf("%.64s\n", text);
  return 0;
}

int main(int argc, char** argv) {
  key_t key = (key_t)strtol(argument(argc, argv, 1), NULL, 10);
  int id = atoi(argument(argc, argv, 2));
  const char* name = argument(argc, argv, 3);
  attempt("shm_by_key", show_segment(shmget(key, 0, 0)));
  attempt("shm_by_id", show_segment(id));
  attempt("sem_by_key", semget(key, 0, 0));
  attempt("msg_by_key", msgget(key, 0));
  char path[256];
  char text[8192] = {0};
  snprintf(path, sizeof path, "/dev/shm%s", name);
  int fd = open(path, O_RDONLY);
  if (attempt("posix_shm", fd < 0 ? -1 : read(fd, text, 64))) printf("%s\n", text);
  mqd_t queue = mq_open(name, O_RDONLY | O_NONBLOCK);
  memset(text, 0, sizeof text);
  if (attempt("mqueue", queue < 0 ? -1 : mq_receive(queue, text, sizeof text, NULL))) {
    printf("%s\n", text);
  }
  return done();
}
