// Closer: closes what a guest has made, on a thread of its own.
//
// Whoever closes a TCP socket last waits until its data has gone, for as long as SO_LINGER says.
// The broker looks at sockets of the guest's through copies, and a guest that closes its own in the
// meantime makes the copy the last. So no copy is ever closed on a thread that others wait for.
#pragma once

#include <memory>

#include "base/fd.h"

namespace belljar::broker {

class Closer {
 public:
  Closer();
  ~Closer();  // does not wait: what is left is closed when it can be
  Closer(const Closer&) = delete;
  Closer& operator=(const Closer&) = delete;

  void close(Fd fd);
  // Whether so much waits that no more should be taken.
  bool is_full() const;

 private:
  struct State;
  static bool start(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;
};

// A descriptor that a guest has made. The closer must live longer.
class GuestFd {
 public:
  GuestFd(Closer& closer, Fd fd) : closer_(&closer), fd_(std::move(fd)) {}
  GuestFd(GuestFd&&) noexcept = default;
  GuestFd& operator=(GuestFd&&) = delete;
  ~GuestFd() {
    if (fd_) closer_->close(std::move(fd_));
  }

  int get() const { return fd_.get(); }
  // For what is known not to wait.
  void close_here() { fd_.reset(); }

 private:
  Closer* closer_;
  Fd fd_;
};

}  // namespace belljar::broker
