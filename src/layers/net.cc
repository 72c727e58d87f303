#include "layers/net.h"

#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/child.h"
#include "base/fd.h"
#include "base/probe.h"

namespace belljar::net {

Support probe() {
  return {.namespaces = try_in_child([] {
                          int flags = CLONE_NEWNET | (::geteuid() == 0 ? 0 : CLONE_NEWUSER);
                          return ::syscall(SYS_unshare, flags) == 0 ? 0 : errno;
                        }).ok()};
}

std::optional<Plan> resolve(const Policy& policy, const Support& host) {
  if (!host.namespaces || policy.network == Network::full) return std::nullopt;
  return Plan{.loopback_up = policy.network != Network::none};
}

void apply(const Plan& plan, const Child& child) noexcept {
  if (!plan.loopback_up) return;
  Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  child.must(bool(socket), "net: socket");
  ifreq request{};
  request.ifr_name[0] = 'l';
  request.ifr_name[1] = 'o';
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  child.must(::ioctl(socket.get(), SIOCSIFFLAGS, &request) == 0, "net: bring up loopback");
}

}  // namespace belljar::net
