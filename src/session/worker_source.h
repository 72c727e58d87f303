// The program of the Python worker, worker.py, as text.
#pragma once

#include <string_view>

// NOLINTBEGIN(readability-identifier-naming): the linker's names
extern "C" const char belljar_worker_begin[];
extern "C" const char belljar_worker_end[];
// NOLINTEND(readability-identifier-naming)

namespace belljar::session {

inline std::string_view worker_source() { return {belljar_worker_begin, belljar_worker_end}; }

}  // namespace belljar::session
