// The programs that run inside a session's jar, as text.
#pragma once

#include <string_view>

// NOLINTBEGIN(readability-identifier-naming): the linker's names
extern "C" const char belljar_worker_begin[];
extern "C" const char belljar_worker_end[];
extern "C" const char belljar_worker_display_begin[];
extern "C" const char belljar_worker_display_end[];
extern "C" const char belljar_warm_begin[];
extern "C" const char belljar_warm_end[];
// NOLINTEND(readability-identifier-naming)

namespace belljar::session {

inline std::string_view worker_source() { return {belljar_worker_begin, belljar_worker_end}; }
inline std::string_view worker_display_source() {
  return {belljar_worker_display_begin, belljar_worker_display_end};
}
inline std::string_view warm_source() { return {belljar_warm_begin, belljar_warm_end}; }

}  // namespace belljar::session
