// Frames: how the engine and a worker inside a jar speak. A frame is its length, four
// bytes with the lowest first, and that many bytes of JSON.
//
// What comes from a worker is the guest's: it can send anything, at any time. So the
// reader bounds what it keeps, and whoever takes a frame believes nothing in it that
// could concern anybody but this guest.
#pragma once

#include <cstddef>
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
  // The next whole frame, if there is one.
  std::optional<std::string> next();

 private:
  std::optional<std::size_t> length() const;

  std::size_t largest_;
  std::string bytes_;
  std::size_t begin_ = 0;  // of what has not been taken
};

}  // namespace belljar::session
