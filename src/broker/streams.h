// Streams: the guest's TCP connections. A listener in the jar's namespace stands on each
// address and port that the guest was allowed to reach; what it accepts is judged again,
// by its own address, and relayed to a connection outside.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>

#include "broker/events.h"
#include "broker/relay.h"
#include "broker/sockets.h"

namespace belljar::broker {

// A connection outside, perhaps still on its way.
struct Upstream {
  explicit Upstream(Loop& loop) : stream(loop), settled(loop) {}
  Allowance::Share share;  // of this, and of the guest's end of it
  Fd socket;               // of one that was done at once: nothing had to wait for it
  Stream stream;           // of one that was on its way
  bool done = false;
  int error = 0;    // once it is done
  Program program;  // for which it was opened
  Clock::time_point begun = Clock::now();
  asio::steady_timer settled;  // ends when it is done
};

// What a connect that is allowed gets.
struct Prepared {
  int error = 0;
  // Somewhere else than it asked for: a server inside has its port, on every address.
  std::optional<Endpoint> detour = {};
};

class Streams {
 public:
  Streams(Loop& loop, Judge& judge, Events& events, Sockets& sockets, Allowance& allowance)
      : loop_(loop),
        judge_(judge),
        events_(events),
        sockets_(sockets),
        allowance_(allowance),
        pipes_(allowance),
        sweep_(loop) {}

  // Before the guest's connect goes on: opens the way outside and stands where it will
  // arrive. `patient`: the guest waits for the answer.
  Async<Prepared> prepare(Endpoint endpoint, Way way, bool patient, Program program);

  // When the guest has ended: what it has said goes on, as far as that is quick.
  Async<void> finish();

  // A connection from outside to a port of the guest's.
  Async<void> serve_published(Fd outside, std::uint16_t port);

 private:
  struct Listener {
    Listener(Loop& loop, Fd socket) : stream(loop, socket.release()) {}
    Stream stream;
    Allowance::Share share;
    std::optional<Endpoint> detour;                   // where it stands instead
    std::deque<std::shared_ptr<Upstream>> upstreams;  // for who arrives next
    Clock::time_point used = Clock::now();
  };
  // The connections of which the guest's bytes have not all gone on. The loop may end them
  // when we are no more.
  struct Crowd {
    int speaking = 0;
    asio::steady_timer* silent = nullptr;  // ends when nobody speaks
  };
  class Speaking {
   public:
    explicit Speaking(std::shared_ptr<Crowd> crowd) : crowd_(std::move(crowd)) {
      ++crowd_->speaking;
    }
    Speaking(const Speaking&) = delete;
    Speaking& operator=(const Speaking&) = delete;
    ~Speaking() {
      if (--crowd_->speaking == 0 && crowd_->silent != nullptr) crowd_->silent->cancel();
    }

   private:
    std::shared_ptr<Crowd> crowd_;
  };
  using Listeners = std::map<Endpoint, std::shared_ptr<Listener>>;

  Async<int> listen_at(Endpoint endpoint, Way way);
  void accept_all(const Endpoint& endpoint, Listener& listener);
  Async<void> pass_guests(Async<void> task, std::unique_ptr<Speaking> speaking);
  Async<void> accept_at(Endpoint endpoint, std::shared_ptr<Listener> listener);
  Async<void> serve(Fd guest, Endpoint endpoint, std::shared_ptr<Upstream> upstream);
  std::shared_ptr<Upstream> open_outside(Endpoint endpoint, Way way);
  Async<void> finish_connect(std::shared_ptr<Upstream> upstream);
  void note_crowd(const Endpoint& endpoint);
  Async<void> sweep();

  Loop& loop_;
  Judge& judge_;
  Events& events_;
  Sockets& sockets_;
  Allowance& allowance_;
  Pipes pipes_;
  Listeners listeners_;
  asio::steady_timer sweep_;
  bool sweeping_ = false;
  std::shared_ptr<Crowd> crowd_ = std::make_shared<Crowd>();
};

}  // namespace belljar::broker
