// A socket of the guest's, through a copy of its descriptor.
#pragma once

#include <sys/types.h>

#include "base/address.h"
#include "broker/closer.h"

namespace belljar::broker {

struct GuestSocket {
  GuestFd fd;    // empty where it sends datagrams
  int type = 0;  // 0 if the descriptor is closed or not a socket
  int family = 0;
  bool patient = true;  // who connects it waits
};

// `number` as that thread has it. Whether it is still the caller is to be asked afterwards.
GuestSocket look_at(pid_t thread, int number, Closer& closer);

// Where the guest asked for, its own server would answer. So its socket is connected for it, to a
// port where only we are: it does not wait. 0 or an errno.
int connect_for(const GuestSocket& socket, const Endpoint& detour);

}  // namespace belljar::broker
