// The init program, as it is executed inside every jar.
#pragma once

#include <string_view>

// NOLINTBEGIN(readability-identifier-naming): the linker's names
extern "C" const char belljar_init_begin[];
extern "C" const char belljar_init_end[];
// NOLINTEND(readability-identifier-naming)

namespace belljar::launcher {

inline std::string_view init_image() { return {belljar_init_begin, belljar_init_end}; }

}  // namespace belljar::launcher
