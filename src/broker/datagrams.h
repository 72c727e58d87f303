// Datagrams: the guest's UDP. A socket in the jar's namespace stands on each address and
// port that the guest may send to; what arrives goes on from a socket outside, one for
// each of the guest's, and answers find their way back.
#pragma once

#include <map>
#include <memory>

#include "broker/events.h"
#include "broker/sockets.h"

namespace belljar::broker {

class Datagrams {
 public:
  Datagrams(Loop& loop, Judge& judge, Events& events, Sockets& sockets)
      : loop_(loop), judge_(judge), events_(events), sockets_(sockets) {}

  // Before the guest's send goes on. 0, or the error to give it.
  Async<int> prepare(Endpoint endpoint);

 private:
  // From one socket of the guest's to one endpoint.
  struct Flow {
    Flow(Loop& loop, Fd socket) : outside(loop, socket.release()) {}
    Stream outside;
    Clock::time_point used = Clock::now();
  };
  struct Stand {
    Stand(Loop& loop, Fd socket) : stream(loop, socket.release()) {}
    Stream stream;
    std::map<Endpoint, std::shared_ptr<Flow>> flows;  // by the guest's own address
    Clock::time_point used = Clock::now();
  };

  Async<void> forward(Endpoint endpoint, std::shared_ptr<Stand> stand);
  Async<void> bring_back(Endpoint guest, std::shared_ptr<Stand> stand, std::shared_ptr<Flow> flow);
  std::shared_ptr<Flow> flow_from(const Endpoint& guest, const Endpoint& endpoint,
                                  const Decision& decision, const std::shared_ptr<Stand>& stand);
  void forget_old();

  Loop& loop_;
  Judge& judge_;
  Events& events_;
  Sockets& sockets_;
  std::map<Endpoint, std::shared_ptr<Stand>> stands_;
};

}  // namespace belljar::broker
