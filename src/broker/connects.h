// Connects: where nothing hides the host's sockets from a guest, its connects are made for it.
//
// Landlock does not stop a connect, and file modes do not stop a guest that is the same user. So
// each of its connects is a notification, and none is let go on: between our look and the
// kernel's, another thread could change the address, or put another socket at the number. We
// take the socket itself out of the guest, copy the address, judge where it leads, and connect
// the one to the other. Datagrams to Unix sockets carry an address each; the filter refuses
// such sockets (layers/notify.h).
//
// Does not do: sockets by an abstract name, which are all refused; a guest that cannot be looked
// into (PR_SET_DUMPABLE), whose connects are refused too. A server inside sees our pid as its
// client's. Needs Linux 5.6.
#pragma once

#include <memory>

#include "broker/own_sockets.h"

namespace belljar::broker {

struct ConnectRules {
  OwnSockets own;
  bool network = true;  // sockets that are not Unix ones may be connected
};

class Connects {
 public:
  // On a thread of its own, until this object ends or nobody is left who could call. It is not
  // waited for: the last close of a guest's socket may take as long as the guest chose.
  static Result<std::unique_ptr<Connects>> start(Fd notifications, ConnectRules rules);
  Connects(const Connects&) = delete;
  Connects& operator=(const Connects&) = delete;
  ~Connects();

 private:
  explicit Connects(Fd stop) : stop_(std::move(stop)) {}
  Fd stop_;
};

}  // namespace belljar::broker
