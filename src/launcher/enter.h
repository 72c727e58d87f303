// enter: the child's side of a launch.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "plan/plan.h"

namespace belljar::launcher {

// When each step of a launch was done, in nanoseconds of CLOCK_MONOTONIC.
struct PhaseClock {
  static constexpr std::size_t kMax = 16;
  std::array<const char*, kMax> names{};
  std::array<std::uint64_t, kMax> at{};
  std::size_t count = 0;
  void mark(const char* name) noexcept;
};

// All the child needs. It shares the parent's memory until it execs, so these
// are the parent's own objects; descriptors are copies.
// NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): filled by name, in one place
struct Entry {
  const Plan* plan;
  view::Late late;
  uid_t jar_uid;       // where root made one up for the jar
  int error_fd;        // a SetupFailure goes here
  bool jar_uid_comes;  // the parent writes the id maps, and go_fd tells when
  int go_fd;           // readable when the parent has done its part; or -1
  int control_fd;      // init's end of the socket
  int supervisor_fd;   // pidfd of this process
  int sockets_fd;      // where the broker asks init for sockets; or -1
  int init_fd;         // the init program
  int terminal_fd;     // the terminal that the guest is given, or -1
  PhaseClock* phases;
  net::Doors* doors;
  std::span<std::byte> second_stack;  // of the thread that makes the view
};

[[noreturn]] void enter(const Entry& entry) noexcept;

}  // namespace belljar::launcher
