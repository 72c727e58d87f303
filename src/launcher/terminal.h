// Whose the caller's terminal is: the guest's only if it was given to it, whole and in the
// foreground.
//
// Who holds a descriptor of a terminal can read what is typed there. Job control does not
// stop that, since it is for processes of the terminal's own session and any process can
// leave it. So a guest that was not given the terminal reads /dev/null in its place and
// writes to it through descriptors that can only be written. Does not do: other terminals,
// such as one that a caller made for the guest; a terminal that the caller may not open
// again, which is passed on as it is; and a guest that was given the terminal and was then
// sent into the background.
#pragma once

#include <array>
#include <span>

#include "base/fd.h"
#include "launcher/launch.h"

namespace belljar::launcher {

class GuestStdio {
 public:
  static Result<GuestStdio> of(const Command& command);
  // 0, 1, 2, and what is to be 3 if the command has that.
  std::span<const int> fds() const { return {fds_.data(), count_}; }
  // Where connects are made for the guest: a Unix datagram socket needs none to call anybody.
  Status refuse_datagrams() const;

 private:
  std::array<int, protocol::kMaxDescriptors> fds_{};
  std::size_t count_ = 3;
  std::array<Fd, 3> own_;
};

}  // namespace belljar::launcher
