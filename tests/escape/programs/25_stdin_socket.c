// Standard input is a connected socket of the host's network: takes it apart from
// its peer and connects it, or listens on it, elsewhere. argv: port on 127.0.0.1
// to connect to.
#include "attempt.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

int main(int argc, char** argv) {
  struct sockaddr_in to = {.sin_family = AF_INET,
                           .sin_port = htons(atoi(argument(argc, argv, 1))),
                           .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  struct sockaddr nowhere = {.sa_family = AF_UNSPEC};
  attempt("disconnect", connect(0, &nowhere, sizeof nowhere));
  long result = connect(0, (struct sockaddr*)&to, sizeof to);
  if (result == 0) result = send(0, "knock", 5, MSG_NOSIGNAL);
  attempt("connect_elsewhere", result);
  return done();
}
