// Limits that a caller of tools can meet and no setting changes. docs/server.md has a table of
// them and of those that can be set, made by `belljar docs limits`.
#pragma once

#include <cstddef>
#include <cstdint>

namespace belljar::server {

inline constexpr std::size_t kMaxCode = std::size_t{16} << 20;  // bytes, as the session has it
// A call that must be approved is shown to every listener, and nobody reads more before he says
// yes.
inline constexpr std::size_t kMaxAskedAbout = 256 << 10;
// Of a decision. Patterns are matched with each command that is asked about, in a time that is the
// product of both lengths; so they are about commands of that length only.
inline constexpr std::size_t kMaxPattern = 4 << 10;
inline constexpr std::size_t kMaxDecisionMessage = 16 << 10;
inline constexpr std::size_t kMaxApproved = 100;  // patterns and same commands, of one session
inline constexpr std::size_t kMaxApprovedBytes = 16 << 10;  // of those patterns
inline constexpr std::size_t kMaxPrograms = 64;             // that run in one session
// That run in all sessions of one principal: up to 2 MiB of what each has written are kept.
inline constexpr std::size_t kMaxProgramsOfOne = 128;
inline constexpr std::int64_t kMaxPollMs = 60'000;  // that one poll of a program waits
inline constexpr std::size_t kMaxListening = 32;    // over MCP, of one principal
// Of a request's policy. The tree behind each is searched whenever the session's plan is made:
// beside the loop, but on a thread that others could use.
inline constexpr std::size_t kMaxPolicyPatterns = 16;
// Of all lists of a request's policy: they are compared with the operator's.
inline constexpr std::size_t kMaxPolicyValues = 256;
inline constexpr std::size_t kMaxPolicyValue = 4096;  // bytes, as a path may have

}  // namespace belljar::server
