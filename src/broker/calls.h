// Calls: the guest's connects and addressed sends, held by the kernel until we answer.
//
// What is read here of the guest's memory may be changed before the kernel reads it, so
// an answer decides only two things: which error a call gets at once, and where the
// broker stands when the call goes on.
#pragma once

#include <linux/seccomp.h>

#include <map>
#include <memory>
#include <vector>

#include "broker/datagrams.h"
#include "broker/events.h"
#include "broker/guest_socket.h"
#include "broker/streams.h"

namespace belljar::broker {

// One descriptor of calls, for as long as somebody can make some and some are not decided.
class Calls : public std::enable_shared_from_this<Calls> {
 public:
  Calls(Loop& loop, Judge& judge, Events& events, Streams& streams, Datagrams& datagrams,
        Closer& closer, Fd notifications)
      : loop_(loop),
        judge_(judge),
        events_(events),
        streams_(streams),
        datagrams_(datagrams),
        closer_(closer),
        notifications_(loop, notifications.release()) {}

  static Async<void> serve(std::shared_ptr<Calls> self);

 private:
  // Where a call is to go, as far as it can be known now.
  struct Target {
    std::uint64_t id;
    pid_t thread;
    int fd;  // the guest's number
    std::vector<Endpoint> endpoints;
    bool connects;
  };

  struct Answer {
    int error = 0;
    bool done = false;  // the call has been made for it
  };

  bool receive(seccomp_notif& call);
  std::vector<Endpoint> endpoints_of(const seccomp_notif& call) const;
  static Async<void> decide(std::shared_ptr<Calls> self, Target target);
  Async<void> decide(const Target& target);
  Async<Answer> prepare(const Target& target, const GuestSocket& socket, const Endpoint& endpoint,
                        const Decision& decision);
  // Not known once the call no longer waits.
  Program program_of(const Target& target);
  bool is_waiting(std::uint64_t id);
  void go_on(std::uint64_t id);
  void finish(std::uint64_t id, int error);

  Loop& loop_;
  Judge& judge_;
  Events& events_;
  Streams& streams_;
  Datagrams& datagrams_;
  Closer& closer_;
  Stream notifications_;
};

}  // namespace belljar::broker
