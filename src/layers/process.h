// process: what a new process would otherwise inherit from its caller.
//
// Defends against: a descriptor of the caller's that leads out of the jar (a
// folder, a socket), signals to the caller's process group, and the caller's
// terminal in the hands of a guest that was not given it. Needs Linux 5.11
// (close_range with CLOEXEC).
#pragma once

#include <initializer_list>

namespace belljar {
class Child;
}

namespace belljar::process {

// Descriptors that are moved down later are kept at or above this number, so
// that none is overwritten before its turn.
inline constexpr int kFirstHighFd = 16;

struct Move {
  int from;  // -1: nothing to move
  int to;
};

enum class Terminal {
  callers,  // the guest was given it, and shares it by job control
  none,     // a session without one: /dev/tty cannot be opened, no group made foreground
};

// An own session or, to share the terminal, an own process group; 0, 1 and 2 become
// /dev/null, since init needs none.
void apply(Terminal terminal, const Child& child) noexcept;

// The list of this process's children, for an init that is not pid 1.
int open_children(const Child& child) noexcept;

// Moves descriptors to the numbers init expects; all others close at exec.
void keep_only(std::initializer_list<Move> moves, const Child& child) noexcept;

}  // namespace belljar::process
