// Frames: how the engine and a worker inside a jar speak. A frame is its length, four
// bytes with the lowest first, and that many bytes of JSON.
//
// What comes from a worker is the guest's: it can send anything, at any time. So the
// reader bounds what it keeps, and whoever takes a frame believes nothing in it that
// could concern anybody but this guest.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace belljar::session {

std::string frame(std::string_view payload);

class FrameReader {
 public:
  explicit FrameReader(std::size_t largest) : largest_(largest) {}

  // Takes what was read. Fails on a frame that is too large, and then for good.
  Status feed(std::string_view bytes);
  // The next whole frame, if there is one. It is not copied: it can be long.
  std::optional<std::string> next();

 private:
  std::size_t largest_;
  std::string header_;  // of the frame that comes
  std::string payload_;
  std::deque<std::string> whole_;
};

}  // namespace belljar::session
