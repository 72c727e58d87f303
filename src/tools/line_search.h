// LineSearch: the matching lines of one file after another, with the lines around them.
//
// A file is read, not mapped: the guest can cut it meanwhile, and a mapping would then end the
// server with SIGBUS. Memory is one window, whatever a file holds; a line that is longer than the
// window is searched in pieces.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "tools/needle.h"

namespace belljar::tools {

// Views into the window, for as long as the call lasts.
struct LineMatch {
  std::uint64_t number;
  std::string_view line;
  std::vector<std::string_view> before, after;
};

// When to give up in the middle of a file.
struct GiveUp {
  std::stop_token stop;
  std::chrono::steady_clock::time_point deadline;
};

class LineSearch {
 public:
  LineSearch(const Needle& needle, std::size_t context, const GiveUp& give_up)
      : needle_(needle), context_(context), give_up_(give_up) {}

  // `found` returns false when it is enough. False: the file is binary or cannot be read, or it
  // was given up.
  bool search(int fd, std::size_t size, const std::function<bool(const LineMatch&)>& found);

 private:
  void search_window(std::size_t end, const std::function<bool(const LineMatch&)>& found);
  std::size_t back(std::size_t from, std::size_t lines) const;
  LineMatch match_at(std::size_t begin, std::size_t end);
  void slide(std::size_t keep);
  std::string_view text() const { return {window_.data(), size_}; }

  const Needle& needle_;
  std::size_t context_;
  const GiveUp& give_up_;
  std::vector<char> window_;
  std::size_t size_ = 0;      // bytes in it
  std::size_t searched_ = 0;  // up to here; the beginning of a line
  std::size_t counted_ = 0;   // up to here lines are in number_
  std::uint64_t number_ = 1;  // of the line at counted_
  bool at_end_ = false;
  bool enough_ = false;
};

}  // namespace belljar::tools
