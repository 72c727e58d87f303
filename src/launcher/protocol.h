// What the supervisor and the jar's init say to one another, over a stream
// socket that no guest process ever holds. Init runs without a C library, so
// these are plain structs; both ends come from the same build.
//
// Init is confined like the guest and must not be trusted more: the supervisor
// checks what it reads, and takes the jar's end from the kernel, not from init.
#pragma once

#include <cstddef>
#include <cstdint>

namespace belljar::protocol {

// Descriptors init finds open.
inline constexpr int kControlFd = 3;
inline constexpr int kSupervisorFd = 4;  // a pidfd: readable when the supervisor has ended
inline constexpr int kChildrenFd = 5;    // /proc/…/children, where there is no pid namespace
inline constexpr int kSocketsFd = 6;     // where the broker asks for sockets, if there is one

enum class Kind : std::uint32_t {
  // to init
  spawn,         // payload: Spawn, then strings; 0, 1, 2 and maybe 3 travel with the header
  signal,        // value: the signal, for the process group of `id`
  signal_all,    // value: the signal, for everything in the jar but init
  resume,        // let everything go on; value: whether the group of `id` gets the terminal first
  signal_group,  // value: the signal, for the process group whose number inside is `id`
  // from init
  listening,  // value: the descriptor of the notifications, before init is executed
  ready,
  started,
  failed,    // value: errno of exec, or kNoFolder and that of chdir
  exited,    // value: wait status
  stopped,   // value: the signal
  signaled,  // a request to signal `id` was carried out
  group_signaled,
};

inline constexpr std::uint32_t kNoFolder = std::uint32_t{1} << 16;  // above every errno

struct Header {
  Kind kind;
  std::uint32_t id;
  std::uint32_t value;
  std::uint32_t size;  // of the payload that follows
};

// The strings follow, each ended by a NUL: the folder to start in, then the
// paths to try, the arguments, the environment.
struct Spawn {
  std::uint64_t signal_mask;
  std::uint32_t paths;
  std::uint32_t arguments;
  std::uint32_t variables;
  std::uint8_t takes_terminal;
  std::uint8_t owns_terminal;  // 0 is a terminal made for it: it leads a session there
  std::uint8_t leads;          // the jar ends when this process does
  std::uint8_t unused;
};

// On kSocketsFd. The answer is one byte with the descriptors, or 0 bytes of them: none
// could be made.
struct SocketRequest {
  std::int32_t family;
  std::int32_t type;
};
inline constexpr int kSocketsAtOnce = 4;

inline constexpr std::size_t kMaxDescriptors = 4;  // of a command

inline constexpr std::uint32_t kMaxPayload = 8U << 20;  // the kernel's own limit is 6 MiB

}  // namespace belljar::protocol
