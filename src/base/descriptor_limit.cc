#include "base/descriptor_limit.h"

#include <sys/resource.h>

#include <atomic>

namespace belljar {
namespace {

// The limit is the process's, so this is too. 0: it was not raised.
std::atomic<std::uint64_t> before_raise = 0;

}  // namespace

void raise_descriptor_limit() {
  ::rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == limit.rlim_max) return;
  std::uint64_t not_raised = 0;
  before_raise.compare_exchange_strong(not_raised, limit.rlim_cur);
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);  // then there are fewer
}

std::optional<std::uint64_t> descriptor_limit_before() {
  const std::uint64_t before = before_raise;
  if (before == 0) return std::nullopt;
  return before;
}

}  // namespace belljar
