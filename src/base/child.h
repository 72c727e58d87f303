// Child: how code between clone and exec reports that it cannot go on. Only
// raw syscalls: the child shares the caller's memory, and malloc's lock may be
// held by one of the caller's threads for ever.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace belljar {

// One record on the error pipe. A clean exec closes the pipe instead.
struct SetupFailure {
  std::int32_t err;
  char step[60];
  char detail[192];  // a path, where there is one
};

class Child {
 public:
  explicit Child(int error_fd) : error_fd_(error_fd) {}

  // Reports `step` with errno to the parent and exits, unless `ok`.
  void must(bool ok, const char* step, const char* detail = "") const noexcept {
    if (!ok) [[unlikely]]
      die(errno, step, detail);
  }
  [[noreturn]] void die(int err, const char* step, const char* detail = "") const noexcept;

 private:
  int error_fd_;
};

}  // namespace belljar
