// Datagrams: the guest's UDP. A socket in the jar's namespace stands on each address and
// port that the guest may send to; what arrives goes on from a socket outside, one for
// each of the guest's, and answers find their way back.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "broker/allowance.h"
#include "broker/events.h"
#include "broker/sockets.h"

namespace belljar::broker {

class Datagrams {
 public:
  Datagrams(Loop& loop, Judge& judge, Events& events, Sockets& sockets, Allowance& allowance)
      : loop_(loop), judge_(judge), events_(events), sockets_(sockets), allowance_(allowance) {}

  // Before the guest's send goes on. 0, or the error to give it.
  Async<int> prepare(Endpoint endpoint);

 private:
  // From one socket of the guest's to one endpoint.
  struct Flow {
    Flow(Loop& loop, Fd socket) : outside(loop, socket.release()) {}
    Stream outside;
    Allowance::Share share;
    Clock::time_point used = Clock::now();
  };
  struct Stand {
    Stand(Loop& loop, Fd socket) : stream(loop, socket.release()) {}
    Stream stream;
    Allowance::Share share;
    std::map<Endpoint, std::shared_ptr<Flow>> flows;  // by the guest's own address
    Clock::time_point used = Clock::now();
  };

  Async<void> forward(Endpoint endpoint, std::shared_ptr<Stand> stand);
  Async<void> bring_back(Endpoint guest, std::shared_ptr<Stand> stand, std::shared_ptr<Flow> flow);
  std::shared_ptr<Flow> flow_from(const Endpoint& guest, const Endpoint& endpoint,
                                  const Decision& decision, const std::shared_ptr<Stand>& stand);
  std::optional<Allowance::Share> take(int fd);
  void forget_old();

  Loop& loop_;
  Judge& judge_;
  Events& events_;
  Sockets& sockets_;
  Allowance& allowance_;
  std::map<Endpoint, std::shared_ptr<Stand>> stands_;
};

}  // namespace belljar::broker
