// Changes what a decision was about while it is being made.
// argv: what tries allowed forbidden port (IPv4)
//   pointer   another thread rewrites the address between the two
//   dup2      another thread puts another socket in place of the one that connects
//   both      both
//   datagram  as pointer, for sendto
// Says how many calls succeeded; where they went is for the servers to say.
#include "../../escape/programs/attempt.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

static struct sockaddr_in target;
static in_addr_t allowed, forbidden;
static atomic_bool over, started;
static atomic_int current = -1;

static void* rewrite(void* unused) {
  volatile in_addr_t* address = &target.sin_addr.s_addr;
  started = true;
  while (!over) {
    // Uneven, so that it is not always the same moment of a call that meets a change.
    for (int i = 0; i < 40; ++i) *address = forbidden;
    for (int i = 0; i < 60; ++i) *address = allowed;
  }
  return unused;
}

static void* replace(void* unused) {
  while (!over) {
    int fd = current;
    if (fd < 0) continue;
    int other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    dup2(other, fd);
    close(other);
  }
  return unused;
}

int main(int argc, char** argv) {
  const char* what = argument(argc, argv, 1);
  long tries = atol(argument(argc, argv, 2)), reached = 0;
  allowed = inet_addr(argument(argc, argv, 3));
  forbidden = inet_addr(argument(argc, argv, 4));
  target.sin_family = AF_INET;
  target.sin_port = htons(atoi(argument(argc, argv, 5)));
  target.sin_addr.s_addr = allowed;
  bool swaps = strcmp(what, "dup2") == 0 || strcmp(what, "both") == 0;
  bool datagram = strcmp(what, "datagram") == 0;
  struct linger at_once = {1, 0};

  pthread_t rewriter, replacer;
  if (strcmp(what, "dup2") == 0) {
    started = true;
  } else {
    pthread_create(&rewriter, NULL, rewrite, NULL);
  }
  if (swaps) pthread_create(&replacer, NULL, replace, NULL);
  while (!started) usleep(100);
  int udp = datagram ? socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;
  for (long i = 0; i < tries; ++i) {
    if (datagram) {
      reached += sendto(udp, "x", 1, MSG_DONTWAIT, (void*)&target, sizeof target) == 1;
      continue;
    }
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) continue;
    // Leaves no port waiting: there are fewer than tries.
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    if (swaps) current = fd;
    reached += connect(fd, (void*)&target, sizeof target) == 0;
    current = -1;
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(fd);
  }
  over = true;
  printf("succeeded %ld\n", reached);
  return done();
}
