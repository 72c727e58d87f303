// Connects again and again while another thread changes what the call is about: the path behind
// the pointer, and the socket at the number. argv: a socket of its own folder, which it makes,
// the host's socket, seconds, and the port of a server on loopback.
#include "attempt.h"

#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

static struct sockaddr_un own = {.sun_family = AF_UNIX}, host = {.sun_family = AF_UNIX};
static union {
  struct sockaddr_un local;
  struct sockaddr_in inet;
} address;
static struct sockaddr_in inet = {.sin_family = AF_INET};
static volatile int number = -1, over;

static void leave(const void* what, size_t size) {
  memcpy(&address, what, size);
  for (volatile int i = 0; i < 300; ++i) __asm__ volatile("" ::: "memory");
}

// In turns: the own path and the host's; a TCP socket with its address and a Unix one.
static void* change(void* unused) {
  int local = socket(AF_UNIX, SOCK_STREAM, 0);
  while (!over) {
    leave(&own, sizeof own);
    leave(&host, sizeof host);
    leave(&own, sizeof own);
    leave(&inet, sizeof inet);
    int at = number;
    if (at >= 0 && dup2(local, at) == at) {  // the only one: another would be its own socket
      close(local);
      local = socket(AF_UNIX, SOCK_STREAM, 0);
    }
    leave(&host, sizeof host);
  }
  return unused;
}

static void* serve(void* listener) {
  for (;;) close(accept(*(int*)listener, NULL, NULL));
  return NULL;
}

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  strncpy(own.sun_path, argv[1], sizeof own.sun_path - 1);
  strncpy(host.sun_path, argv[2], sizeof host.sun_path - 1);
  inet.sin_port = htons(atoi(argv[4]));
  inet.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  if (bind(listener, (void*)&own, sizeof own) || listen(listener, 64)) return 3;
  pthread_t thread;
  pthread_create(&thread, NULL, serve, &listener);
  int first = socket(AF_UNIX, SOCK_STREAM, 0);
  printf("%s\n", connect(first, (void*)&own, sizeof own) ? "called nobody" : "called its own");
  pthread_create(&thread, NULL, change, NULL);
  long calls = 0;
  time_t end = time(NULL) + atoi(argv[3]);
  while (time(NULL) < end) {
    number = socket(calls++ % 2 ? AF_INET : AF_UNIX, SOCK_STREAM, 0);
    connect(number, (void*)&address, sizeof address.local);
    close(number);
  }
  over = 1;
  return done();
}
