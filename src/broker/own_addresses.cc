#include "broker/own_addresses.h"

#include <ifaddrs.h>

#include <algorithm>
#include <cstddef>
#include <memory>

namespace belljar::broker {

std::optional<std::vector<IpAddress>> own_addresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) < 0) return std::nullopt;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owned(list, ::freeifaddrs);
  std::vector<IpAddress> addresses;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr) continue;
    const bool v4 = one->ifa_addr->sa_family == AF_INET;
    if (!v4 && one->ifa_addr->sa_family != AF_INET6) continue;
    const socklen_t size = v4 ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    sockaddr_storage storage{};
    std::copy_n(reinterpret_cast<const std::byte*>(one->ifa_addr), size,
                reinterpret_cast<std::byte*>(&storage));
    if (const std::optional<Endpoint> found = Endpoint::from(storage, size))
      addresses.push_back(found->address);
  }
  return addresses;
}

}  // namespace belljar::broker
