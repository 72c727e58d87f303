// A thousand threads connect at once. argv: threads allowed forbidden port (IPv4)
// Says how many were answered, refused, and got no answer at all.
#include "../../escape/programs/attempt.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

static struct sockaddr_in targets[2];
static atomic_int answered[2], refused[2];
static pthread_barrier_t start;

static void* call(void* which) {
  int i = (int)(intptr_t)which;
  pthread_barrier_wait(&start);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct timeval patience = {20, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  char answer[8];
  if (connect(fd, (void*)&targets[i], sizeof targets[i]) == 0 &&
      send(fd, "knock\n", 6, MSG_NOSIGNAL) == 6 && recv(fd, answer, sizeof answer, 0) == 6) {
    answered[i]++;
  } else {
    refused[i]++;
  }
  close(fd);
  return NULL;
}

int main(int argc, char** argv) {
  int threads = atoi(argument(argc, argv, 1));
  for (int i = 0; i < 2; ++i) {
    targets[i].sin_family = AF_INET;
    targets[i].sin_port = htons(atoi(argument(argc, argv, 4)));
    inet_pton(AF_INET, argv[2 + i], &targets[i].sin_addr);
  }
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 32 << 10);
  pthread_barrier_init(&start, NULL, threads);
  pthread_t* all = calloc(threads, sizeof *all);
  for (int i = 0; i < threads; ++i) {
    if (pthread_create(&all[i], &small, call, (void*)(intptr_t)(i % 2)) != 0) return 98;
  }
  for (int i = 0; i < threads; ++i) pthread_join(all[i], NULL);
  printf("allowed: answered %d refused %d\n", answered[0], refused[0]);
  printf("forbidden: answered %d refused %d\n", answered[1], refused[1]);
  return done();
}
