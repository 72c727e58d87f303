#include "base/child.h"

#include <unistd.h>

namespace belljar {
namespace {

template <std::size_t N>
void copy(char (&to)[N], const char* from) {
  std::size_t i = 0;
  for (; i + 1 < N && from[i] != '\0'; ++i) to[i] = from[i];
  to[i] = '\0';
}

}  // namespace

void Child::die(int err, const char* step, const char* detail) const noexcept {
  SetupFailure failure{};
  failure.err = err;
  copy(failure.step, step);
  copy(failure.detail, detail);
  // If the parent is gone there is nobody left to tell.
  [[maybe_unused]] ssize_t n = ::write(error_fd_, &failure, sizeof failure);
  ::_exit(125);
}

}  // namespace belljar
