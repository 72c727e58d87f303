// Output: what a guest wrote to one stream during a call, within bounds. It keeps the
// head and the tail and counts what it had to leave out between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace belljar::session {

class Output {
 public:
  explicit Output(std::size_t limit) : limit_(limit) {}

  void append(std::string_view bytes);
  // From now on. What has been cut stays cut.
  void set_limit(std::size_t limit);

  std::uint64_t written() const { return written_; }
  std::uint64_t cut() const;  // bytes that are not in text()

  // Valid UTF-8, with a line in the place of what was cut.
  std::string text() const;

 private:
  std::size_t head_limit() const { return limit_ - limit_ / 2; }
  std::size_t tail_limit() const { return limit_ / 2; }

  std::size_t limit_;
  std::uint64_t written_ = 0;
  std::string head_;
  std::string tail_;  // at most twice as long as it may be: see append
};

}  // namespace belljar::session
