// Resolver: names to addresses as the host knows them, by its hosts file and its name
// servers. c-ares does it, since a static program cannot use the C library's.
#pragma once

#include <string>
#include <vector>

#include "base/address.h"
#include "base/loop.h"

namespace belljar::broker {

struct Resolved {
  enum class Kind { found, no_such_name, failed };
  Kind kind = Kind::failed;
  std::vector<IpAddress> addresses;  // none: the name has no address of this family
  std::uint32_t ttl = 0;
};

class Resolver {
 public:
  explicit Resolver(Loop& loop) : loop_(loop) {}
  Async<Resolved> resolve(std::string name, int family);

 private:
  Loop& loop_;
};

}  // namespace belljar::broker
