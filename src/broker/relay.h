// Relay: the bytes of two streams, each way until its end, without copying them where there is a
// pipe for it.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/loop.h"
#include "broker/allowance.h"

namespace belljar::broker {

// Pipes that data passes through on its way. A stream holds one only while it has data.
class Pipes {
 public:
  struct Lent {
    Pipe pipe;
    Allowance::Share share;
  };

  explicit Pipes(Allowance& allowance) : allowance_(allowance) {}

  std::optional<Lent> borrow();  // nothing: there are too many
  void give_back(Lent lent);     // an empty one

 private:
  Allowance& allowance_;
  std::vector<Lent> idle_;
};

// Two streams that belong together: what breaks the one breaks the other.
struct Link {
  Stream guest;
  Stream outside;
  bool broken = false;

  // Ends both at once; the other sides see a reset.
  void cut();
};

// Passes on all that comes `from`; its end is the other's end too.
Async<void> pump(Link& link, Stream& from, Stream& to, Pipes& pipes);

// Sends all of it. False: the link is broken.
Async<bool> send_all(Link& link, Stream& to, std::span<const std::byte> bytes);

}  // namespace belljar::broker
