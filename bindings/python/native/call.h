// Call: something that was asked of an engine and is answered in time. The asker's thread and the
// engine's meet here and nowhere else.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "server/cancel.h"

namespace belljar::python {

struct News {
  char kind;  // as belljar_py_call_next has it
  std::string bytes;
};

class Call {
 public:
  static std::shared_ptr<Call> make();

  // Of the engine's thread. Output that nobody takes is kept up to a bound, and then dropped:
  // what was dropped is in the answer anyway, as far as that has room.
  void tell(char kind, std::string_view bytes);
  bool is_done() const;

  // Of the asker's.
  int fd() const { return fd_.get(); }
  std::optional<News> next();

  // Of the engine's thread alone.
  const std::shared_ptr<server::Cancel> cancel = std::make_shared<server::Cancel>();

 private:
  explicit Call(Fd fd) : fd_(std::move(fd)) {}

  static constexpr std::size_t kMostOutput = std::size_t{8} << 20;
  static constexpr std::size_t kPiece = std::size_t{64} << 10;

  Fd fd_;
  mutable std::mutex mutex_;
  std::deque<News> news_;
  std::size_t held_ = 0;  // bytes of output in it
  bool done_ = false;
};

}  // namespace belljar::python
