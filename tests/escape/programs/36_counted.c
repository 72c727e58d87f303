// Takes what the kernel counts for a user or for the whole machine. argv: what, and how much of it
// would be too much.
#include "attempt.h"

#include <linux/aio_abi.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>

static long too_much;

// Errno stays what the first one that was not given left.
static void take(const char* what, long (*one)(long i)) {
  for (long i = 0; i < too_much; ++i) {
    errno = 0;
    long taken = one(i);
    if (taken > 0) i += taken - 1;
    if (taken < 0) {
      int err = errno;
      printf("had %ld\n", i);
      stopped(what, err);
      return;
    }
  }
  escaped(what);
}

static long terminal(long i) {
  (void)i;
  return posix_openpt(O_RDWR | O_NOCTTY) < 0 ? -1 : 0;
}

static long aio(long i) {
  (void)i;
  aio_context_t context = 0;
  return syscall(SYS_io_setup, 1, &context);
}

static long pending_signal(long i) {
  return sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = (int)i});
}

static long timer(long i) {
  (void)i;
  timer_t made;
  return timer_create(CLOCK_MONOTONIC, NULL, &made);
}

// In bytes.
static long queue(long i) {
  char name[64];
  snprintf(name, sizeof name, "/belljar-%d-%ld", getpid(), i);
  struct mq_attr attr = {.mq_maxmsg = 10, .mq_msgsize = 8192};
  if (mq_open(name, O_CREAT | O_RDWR, 0600, &attr) < 0) return -1;
  mq_unlink(name);
  return attr.mq_maxmsg * attr.mq_msgsize;
}

// What one TCP connection keeps of bytes that nobody reads.
static void connection(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof address;
  int server = socket(AF_INET, SOCK_STREAM, 0);
  int client = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(server, (struct sockaddr*)&address, size) < 0 || listen(server, 1) < 0 ||
      getsockname(server, (struct sockaddr*)&address, &size) < 0 ||
      connect(client, (struct sockaddr*)&address, size) < 0 || accept(server, NULL, NULL) < 0)
    return stopped("connection", errno);
  static char block[64 << 10];
  struct pollfd writable = {client, POLLOUT, 0};
  long kept = 0;
  while (kept < too_much && poll(&writable, 1, 300) > 0) {
    ssize_t n = send(client, block, sizeof block, MSG_DONTWAIT);
    if (n > 0) kept += n;
  }
  printf("kept %ld\n", kept);
  if (kept < too_much)
    stopped("connection", EAGAIN);
  else
    escaped("connection");
}

// Keeps who wants to write the file waiting, for as long as the machine lets it.
static void lease(const char* path) {
  int fd = open(path, O_RDONLY);
  signal(SIGIO, SIG_IGN);
  attempt("lease", fd < 0 ? -1 : fcntl(fd, F_SETLEASE, F_RDLCK));
  done();
  fflush(stdout);
  sleep(5);
  exit(0);
}

int main(int argc, char** argv) {
  const char* what = argument(argc, argv, 1);
  if (strcmp(what, "lease") == 0) lease(argument(argc, argv, 2));
  too_much = atol(argument(argc, argv, 2));
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, NULL);
  if (strcmp(what, "terminals") == 0) take(what, terminal);
  if (strcmp(what, "aio") == 0) take(what, aio);
  if (strcmp(what, "signals") == 0) take(what, pending_signal);
  if (strcmp(what, "timers") == 0) take(what, timer);
  if (strcmp(what, "queues") == 0) take(what, queue);
  if (strcmp(what, "connection") == 0) connection();
  return done();
}
