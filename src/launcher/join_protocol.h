// What a fork of another jar's process is told when it joins a jar. The joiner runs without a
// C library, so these are plain structs; both ends come from the same build. session/warm.py
// passes the first on and never sees the second.
#pragma once

#include <cstdint>

namespace belljar::join {

// To the process that forks, with two descriptors: a socket for its fork, and the pidfd of the
// jar's init. None of it is a secret of the session's.
struct Call {
  std::uint64_t namespaces;
  std::int64_t uid;  // -1: the one it has
};

// To the fork, over that socket, with its control socket, 0, 1 and 2 and, if there is one, the
// Landlock ruleset. It is followed by the limits, the filters, the folder to start in and the
// variables, each string of these ended by a NUL.
struct Request {
  std::uint32_t has_ruleset;
  std::uint32_t waits;      // until it has been moved into the jar's cgroup
  std::uint32_t limits;     // how many
  std::uint32_t listener;   // instructions of the filter whose calls wait for the broker
  std::uint32_t filter;     // instructions
  std::uint32_t folder;     // bytes, with the NUL
  std::uint32_t variables;  // bytes
  std::uint32_t unused;     // so that limits are aligned
};

struct Limit {
  std::uint64_t resource, soft, hard;
};

inline constexpr std::uint32_t kMaxRequest = 192U << 10;  // what a socket takes at once

// From the fork.
inline constexpr char kPidfd = 'P';    // with its own pidfd
inline constexpr char kListens = 'L';  // and the number of its listener, 4 bytes; it waits
inline constexpr char kJoined = 'J';   // and what it does next is the worker's
inline constexpr char kFailed = 'F';   // an errno of 4 bytes, and the step
// From the process that forked, over the same socket.
inline constexpr char kBorn = 'B';  // with the fork's pidfd; before or after what that says
// To the fork.
inline constexpr char kGoOn = 'g';  // when it waits

}  // namespace belljar::join
