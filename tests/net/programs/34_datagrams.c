// Every way to send a datagram. argv: allowed forbidden port (IPv4). Each datagram to the
// forbidden address holds the name of the way; what arrives is for the server to say.
#include "../../escape/programs/attempt.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

static struct sockaddr_in allowed, forbidden;

static int udp(void) { return socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0); }

static struct msghdr message(struct sockaddr_in* to, struct iovec* text) {
  return (struct msghdr){
      .msg_name = to, .msg_namelen = to ? sizeof *to : 0, .msg_iov = text, .msg_iovlen = 1};
}

int main(int argc, char** argv) {
  allowed.sin_family = forbidden.sin_family = AF_INET;
  allowed.sin_port = forbidden.sin_port = htons(atoi(argument(argc, argv, 3)));
  inet_pton(AF_INET, argv[1], &allowed.sin_addr);
  inet_pton(AF_INET, argv[2], &forbidden.sin_addr);
  const struct sockaddr* good = (void*)&allowed;
  const struct sockaddr* bad = (void*)&forbidden;
  socklen_t size = sizeof allowed;

  int fd = udp();
  attempt("sendto", sendto(fd, "sendto", 6, 0, bad, size));

  struct iovec text = {"sendmsg", 7};
  struct msghdr one = message(&forbidden, &text);
  attempt("sendmsg", sendmsg(fd, &one, 0));

  struct iovec texts[3] = {{"first", 5}, {"sendmmsg", 8}, {"sendmmsg_last", 13}};
  struct mmsghdr many[3] = {{message(&allowed, &texts[0]), 0},
                            {message(&forbidden, &texts[1]), 0},
                            {message(&forbidden, &texts[2]), 0}};
  attempt("sendmmsg", sendmmsg(fd, many, 3, 0) == 3 ? 0 : -1);

  attempt("connect", connect(fd, bad, size));
  send(fd, "connect", 7, MSG_NOSIGNAL);

  int held = udp();
  connect(held, good, size);
  attempt("sendto_connected", sendto(held, "sendto_connected", 16, 0, bad, size));
  struct sockaddr none = {.sa_family = AF_UNSPEC};
  connect(held, &none, sizeof none);
  attempt("sendto_disconnected", sendto(held, "sendto_disconnected", 19, 0, bad, size));
  connect(held, good, size);
  connect(held, bad, size);
  attempt("connect_again", send(held, "connect_again", 13, MSG_NOSIGNAL));

  struct sockaddr_in6 mapped = {.sin6_family = AF_INET6, .sin6_port = forbidden.sin_port};
  memcpy(&mapped.sin6_addr.s6_addr[12], &forbidden.sin_addr, 4);
  mapped.sin6_addr.s6_addr[10] = mapped.sin6_addr.s6_addr[11] = 0xff;
  int six = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  attempt("mapped", sendto(six, "mapped", 6, 0, (void*)&mapped, sizeof mapped));

  int bound = udp();
  struct sockaddr_in any = {.sin_family = AF_INET};
  bind(bound, (void*)&any, sizeof any);
  attempt("bound", sendto(bound, "bound", 5, 0, bad, size));

  // With a control message that names the interface, as programs with many addresses send.
  char control[CMSG_SPACE(sizeof(struct in_pktinfo))] = {0};
  struct iovec routed = {"pktinfo", 7};
  struct msghdr by_interface = message(&forbidden, &routed);
  by_interface.msg_control = control;
  by_interface.msg_controllen = sizeof control;
  struct cmsghdr* head = CMSG_FIRSTHDR(&by_interface);
  *head = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(struct in_pktinfo)),
                           .cmsg_level = IPPROTO_IP,
                           .cmsg_type = IP_PKTINFO};
  attempt("pktinfo", sendmsg(fd, &by_interface, 0));
  return done();
}
