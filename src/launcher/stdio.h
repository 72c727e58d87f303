// A command's standard streams, as the library offers them: given descriptors, a text
// to read, and output kept up to a size.
#pragma once

#include <array>
#include <string>

#include "base/fd.h"
#include "belljar/belljar.h"

namespace belljar::launcher {

// The reading end of a pipe that a guest writes. It never blocks, and it never makes
// the guest wait for room: what is too much is read and dropped.
class Capture {
 public:
  Capture() = default;
  Capture(Fd pipe, std::size_t limit) : pipe_(std::move(pipe)), limit_(limit) {}

  int fd() const { return pipe_.get(); }
  void read_some();
  // All that has been written so far, and no waiting for the pipe's end: a process in
  // the background, or a fork of the caller's, may hold it open for ever.
  void read_rest();
  void keep_nothing_more() { limit_ = 0; }

  std::string text;
  std::uint64_t dropped = 0;

 private:
  bool read_once();
  Fd pipe_;
  std::size_t limit_ = 0;
};

struct Stdio {
  std::array<int, 3> fds{-1, -1, -1};  // for the guest: those of the command, or these
  std::array<Fd, 3> own;               // closed here once the command has been started
  Capture out, err;
};

Result<Stdio> open_stdio(const belljar::Command& command);

}  // namespace belljar::launcher
