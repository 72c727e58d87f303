// Connects to Unix sockets of the host. argv: paths; one that starts with `@` is
// an abstract name; `dgram:` before a path sends a datagram.
#include "attempt.h"

#include <sys/socket.h>
#include <sys/un.h>

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    char what[32];
    const char* name = argv[i];
    int type = SOCK_STREAM;
    if (strncmp(name, "dgram:", 6) == 0) {
      type = SOCK_DGRAM;
      name += 6;
    }
    snprintf(what, sizeof what, "connect#%d", i);
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t length = strlen(name);
    memcpy(to.sun_path, name, length < sizeof to.sun_path ? length : sizeof to.sun_path - 1);
    if (to.sun_path[0] == '@') to.sun_path[0] = 0;
    socklen_t size = offsetof(struct sockaddr_un, sun_path) + length + (name[0] != '@');
    int fd = socket(AF_UNIX, type, 0);
    long result = connect(fd, (struct sockaddr*)&to, size);
    if (result == 0) result = send(fd, "knock", 5, MSG_NOSIGNAL);
    attempt(what, result);
    close(fd);
  }
  return done();
}
