// warm.py, as it is sent to the interpreter.
#pragma once

#include <string_view>

// NOLINTBEGIN(readability-identifier-naming): the linker's names
extern "C" const char belljar_warm_begin[];
extern "C" const char belljar_warm_end[];
// NOLINTEND(readability-identifier-naming)

namespace belljar::session {

inline std::string_view warm_source() { return {belljar_warm_begin, belljar_warm_end}; }

}  // namespace belljar::session
