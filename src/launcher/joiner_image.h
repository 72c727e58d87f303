// The joiner, as it is loaded into a warm interpreter.
#pragma once

#include <string_view>

// NOLINTBEGIN(readability-identifier-naming): the linker's names
extern "C" const char belljar_joiner_begin[];
extern "C" const char belljar_joiner_end[];
// NOLINTEND(readability-identifier-naming)

namespace belljar::launcher {

inline std::string_view joiner_image() { return {belljar_joiner_begin, belljar_joiner_end}; }

}  // namespace belljar::launcher
