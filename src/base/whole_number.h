// Whole numbers in JSON, where 3.0 is one.
#pragma once

#include <cmath>

namespace belljar {

inline constexpr double kLargestExact = 9007199254740992.0;  // 2^53

// Boost reads a long decimal one or two units of its last place wrong: 2199163974726183.0 becomes
// 2199163974726183.25.
inline bool is_whole(double number) {
  return std::abs(number - std::round(number)) <= std::abs(number) * 0x1p-51;
}

}  // namespace belljar
