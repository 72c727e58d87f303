// Asks libc for a name, connects and fetches a page. Built with musl, whose resolver is its own.
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc != 3) return 99;
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
  int problem = getaddrinfo(argv[1], argv[2], &hints, &found);
  if (problem != 0) {
    fprintf(stderr, "%s: %s\n", argv[1], gai_strerror(problem));
    return 1;
  }
  int fd = -1;
  for (struct addrinfo* each = found; each != NULL && fd < 0; each = each->ai_next) {
    fd = socket(each->ai_family, each->ai_socktype, 0);
    if (fd >= 0 && connect(fd, each->ai_addr, each->ai_addrlen) != 0) {
      perror("connect");
      close(fd);
      fd = -1;
    }
  }
  if (fd < 0) return 1;
  dprintf(fd, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", argv[1]);
  char page[4096];
  size_t length = 0;
  for (ssize_t got; length < sizeof page && (got = read(fd, page + length, sizeof page - length)) > 0;) {
    length += got;
  }
  fwrite(page, 1, length, stdout);
  return length == 0;
}
