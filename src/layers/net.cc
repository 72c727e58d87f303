#include "layers/net.h"

#include <fcntl.h>
#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

#include "base/child.h"
#include "base/probe.h"
#include "layers/process.h"

namespace belljar::net {
namespace {

// The guest's own address. A resolver asks whether a family has any that is not loopback
// before it looks a name up; and from these the guest's connections seem to come.
// Nobody else has them: RFC 7600 and RFC 6666.
constexpr unsigned char kOwn4[] = {192, 0, 0, 8};
constexpr unsigned char kOwn6[] = {0x01, 0x00, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};

constexpr int kWaitingConnections = 64;

// Least, first and most bytes of a TCP connection's buffer, in each direction. The kernel's own
// most is some MB, and no limit but a cgroup's counts it. On a loopback more is not faster.
constexpr char kTcpBuffer[] = "4096 65536 262144";

// A request to the kernel's routing, made on the stack.
class Request {
 public:
  Request(std::uint16_t type, const void* body, std::size_t size) noexcept {
    header()->nlmsg_type = type;
    header()->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE;
    std::memcpy(bytes_ + NLMSG_HDRLEN, body, size);
    size_ = NLMSG_LENGTH(size);
  }
  void add(std::uint16_t type, const void* value, std::size_t size) noexcept {
    auto* attribute = reinterpret_cast<rtattr*>(bytes_ + NLMSG_ALIGN(size_));
    attribute->rta_type = type;
    attribute->rta_len = static_cast<std::uint16_t>(RTA_LENGTH(size));
    std::memcpy(RTA_DATA(attribute), value, size);
    size_ = NLMSG_ALIGN(size_) + RTA_ALIGN(attribute->rta_len);
  }
  // 0, or the errno of the kernel's answer.
  int send(int netlink_fd) noexcept {
    header()->nlmsg_len = static_cast<std::uint32_t>(size_);
    if (::send(netlink_fd, bytes_, size_, 0) < 0) return errno;
    alignas(nlmsghdr) char answer[512];
    const ssize_t n = ::recv(netlink_fd, answer, sizeof answer, 0);
    if (n < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(nlmsgerr)))) return n < 0 ? errno : EPROTO;
    nlmsgerr result{};
    std::memcpy(&result, answer + NLMSG_HDRLEN, sizeof result);
    return -result.error;
  }

 private:
  nlmsghdr* header() { return reinterpret_cast<nlmsghdr*>(bytes_); }
  alignas(nlmsghdr) char bytes_[256] = {};
  std::size_t size_ = 0;
};

struct Family {
  unsigned char family;
  const unsigned char* own;
  unsigned char size;
};

int lead_everything_here(int netlink_fd, unsigned loopback, const Family& of) noexcept {
  const ifaddrmsg address{.ifa_family = of.family,
                          .ifa_prefixlen = static_cast<unsigned char>(of.size * 8),
                          .ifa_flags = IFA_F_NODAD,
                          .ifa_scope = RT_SCOPE_UNIVERSE,
                          .ifa_index = loopback};
  Request add_address(RTM_NEWADDR, &address, sizeof address);
  add_address.add(IFA_LOCAL, of.own, of.size);
  add_address.add(IFA_ADDRESS, of.own, of.size);
  if (const int err = add_address.send(netlink_fd); err != 0) return err;

  rtmsg route{};  // to the whole of the family
  route.rtm_family = of.family;
  route.rtm_table = RT_TABLE_LOCAL;
  route.rtm_protocol = RTPROT_BOOT;
  route.rtm_scope = of.family == AF_INET ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE;
  route.rtm_type = RTN_LOCAL;
  Request add_route(RTM_NEWROUTE, &route, sizeof route);
  add_route.add(RTA_OIF, &loopback, sizeof loopback);
  add_route.add(RTA_PREFSRC, of.own, of.size);
  return add_route.send(netlink_fd);
}

// If it cannot be written (a container's /proc/sys), it is as it was.
void limit_buffers(const Fd& settings) noexcept {
  for (const char* name : {"net/ipv4/tcp_rmem", "net/ipv4/tcp_wmem"}) {
    const Fd file(::openat(settings.get(), name, O_WRONLY | O_CLOEXEC));
    if (file) (void)!::write(file.get(), kTcpBuffer, sizeof kTcpBuffer - 1);
  }
}

int open_dns(int type, const Child& child) noexcept {
  const Fd low(::socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  child.must(bool(low), "net: socket for names");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(53);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  child.must(::bind(low.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0,
             "net: bind port 53");
  if (type == SOCK_STREAM)
    child.must(::listen(low.get(), kWaitingConnections) == 0, "net: listen on port 53");
  const int high = ::fcntl(low.get(), F_DUPFD_CLOEXEC, process::kFirstHighFd);
  child.must(high >= 0, "net: keep port 53");
  return high;
}

}  // namespace

Support probe() {
  return {.namespaces = try_in_child([] {
                          int flags = CLONE_NEWNET | (::geteuid() == 0 ? 0 : CLONE_NEWUSER);
                          return ::syscall(SYS_unshare, flags) == 0 ? 0 : errno;
                        }).ok()};
}

std::optional<Plan> resolve(const Policy& policy, const Support& host) {
  if (!host.namespaces || policy.network == Network::full) return std::nullopt;
  return Plan{.loopback_up = policy.network != Network::none,
              .by_name = policy.network == Network::hosts};
}

Fd open_settings(const Plan& plan) noexcept {
  return Fd(plan.loopback_up ? ::open("/proc/sys", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1);
}

void apply(const Plan& plan, Fd settings, Doors& doors, const Child& child) noexcept {
  if (!plan.loopback_up) return;
  if (settings) limit_buffers(settings);
  const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  child.must(bool(socket), "net: socket");
  ifreq request{};
  request.ifr_name[0] = 'l';
  request.ifr_name[1] = 'o';
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  child.must(::ioctl(socket.get(), SIOCSIFFLAGS, &request) == 0, "net: bring up loopback");
  if (!plan.by_name) return;

  child.must(::ioctl(socket.get(), SIOCGIFINDEX, &request) == 0, "net: find loopback");
  const auto loopback = static_cast<unsigned>(request.ifr_ifindex);
  const Fd netlink(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  child.must(bool(netlink), "net: netlink");
  const int err = lead_everything_here(netlink.get(), loopback, {AF_INET, kOwn4, sizeof kOwn4});
  if (err != 0) child.die(err, "net: lead every address to the loopback");
  // A kernel without IPv6 has nothing to lead; there the guest gets no such address.
  (void)lead_everything_here(netlink.get(), loopback, {AF_INET6, kOwn6, sizeof kOwn6});
  doors.dns_udp_fd = open_dns(SOCK_DGRAM, child);
  doors.dns_tcp_fd = open_dns(SOCK_STREAM, child);
}

}  // namespace belljar::net
