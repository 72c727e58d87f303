#include "broker/allowance.h"

#include <sys/resource.h>

#include <algorithm>

namespace belljar::broker {
namespace {

constexpr std::size_t kShares = 4;
constexpr std::size_t kMost = 8192;  // some 4,000 connections
constexpr std::size_t kUnknown = 1024;

// Asked each time: it may be raised after the jar has started.
std::size_t descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) < 0) return kUnknown;
  return limit.rlim_cur;
}

}  // namespace

std::optional<Allowance::Share> Allowance::take(std::size_t count, int newest_fd) {
  const std::size_t limit = descriptor_limit();
  if (taken_ + count > std::min(limit / kShares, kMost)) return std::nullopt;
  if (newest_fd < 0 || static_cast<std::size_t>(newest_fd) >= limit - limit / kShares)
    return std::nullopt;
  taken_ += count;
  return Share(*this, count);
}

}  // namespace belljar::broker
