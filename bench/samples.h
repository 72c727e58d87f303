// What a benchmark keeps of its rounds, and how it writes them down.
#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

using Nanoseconds = std::int64_t;

inline Nanoseconds now() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return Nanoseconds{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

// The value that a share of the samples does not exceed: 0.5 is the median.
double quantile(std::vector<Nanoseconds> samples, double share);

std::string fixed(double value, int decimals);

// One line about where and when: kernel, cores, date.
std::string machine();
// The first line a program prints about its version, or "not found".
std::string version_of(const std::vector<std::string>& command);

// Replaces what stands between `<!-- NAME:begin -->` and `<!-- NAME:end -->`.
// False when the file or a marker is missing.
bool write_between(const std::string& file, const std::string& name, std::string_view text);

}  // namespace bench
