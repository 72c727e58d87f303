// Leaves a System V segment, a semaphore set and a message queue behind. argv: key.
#include "attempt.h"

#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

int main(int argc, char** argv) {
  key_t key = (key_t)strtol(argument(argc, argv, 1), NULL, 10);
  printf("shm %d\n", shmget(key, 4096, IPC_CREAT | 0666));
  printf("sem %d\n", semget(key, 1, IPC_CREAT | 0666));
  printf("msg %d\n", msgget(key, IPC_CREAT | 0666));
  return done();
}
