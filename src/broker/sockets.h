// Sockets of the jar's network namespace. A socket belongs to the namespace of whoever
// made it, and the broker cannot enter the jar's, so it asks init for them. Binding and
// connecting them is done out here, by the right of who made the jar.
#pragma once

#include <sys/socket.h>

#include <map>
#include <vector>

#include "base/loop.h"

namespace belljar::broker {

class Sockets {
 public:
  Sockets(Loop& loop, Fd init) : init_(loop, init.release()), answered_(loop) {}

  // Non-blocking. Empty: init could make none.
  Async<Fd> get(int family, int type);

 private:
  Async<void> ask(int family, int type);

  Stream init_;
  Signal answered_;
  bool asking_ = false;
  std::map<std::pair<int, int>, std::vector<Fd>> stock_;
};

}  // namespace belljar::broker
