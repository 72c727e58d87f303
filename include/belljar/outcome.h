// Outcome: how a guest ended. A sandbox that could not be built is an Error,
// never an Outcome: callers must not mistake our failure for the guest's.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "belljar/policy.h"

namespace belljar {

enum class Reason {
  exited,
  signaled,
  timeout,        // the wall time of the policy was over
  out_of_memory,  // the memory of the policy was exceeded
  cpu_limit,
  file_size_limit,
  not_started,  // the command is not there (127) or cannot be executed (126)
};

// What this host cannot do of what the policy asked.
struct Loss {
  Promise promise;
  bool broken;  // nothing keeps the promise; else only one layer of several is missing
  std::string what;
  std::string hint;
  bool operator==(const Loss&) const = default;
};

struct Kept {
  Promise promise;
  std::vector<std::string> layers;
  bool operator==(const Kept&) const = default;
};

// What was decided about a connection, a datagram's way or a name, with Network::hosts.
struct NetworkEvent {
  std::chrono::system_clock::time_point time;
  int pid = 0;          // of the thread, as the host counts; 0: not known
  std::string process;  // its program
  std::string name;     // empty: it went by the address
  std::string address;  // empty: the name was not resolved
  std::uint16_t port = 0;
  std::string protocol;  // tcp, udp, dns
  bool allowed = false;
  std::string rule;         // that decided, as written; empty: none did
  std::string why;          // it was denied
  std::string would_allow;  // the rule that would
};

struct Outcome {
  Reason reason = Reason::exited;
  int code = 0;  // exit status, or signal number when it was a signal that ended it
  bool by_signal = false;
  int exec_error = 0;  // errno, when it was not started
  std::chrono::microseconds wall{};
  std::chrono::microseconds user_cpu{};
  std::chrono::microseconds system_cpu{};
  std::uint64_t peak_memory_kb = 0;
  std::vector<Kept> kept;
  std::vector<Loss> losses;
  std::vector<std::string> limits_hit;
  std::vector<std::pair<std::string, std::chrono::microseconds>> phases;  // of the launch

  // With Network::hosts, in order; what is beyond a large number is only counted.
  std::vector<NetworkEvent> network;
  std::uint64_t network_dropped = 0;

  // What it wrote, where the command asked for it to be kept.
  std::string out, err;
  std::uint64_t out_dropped = 0, err_dropped = 0;  // bytes beyond the command's max_output

  // As a shell would report it: 124 for a timeout, 128 + signal.
  int exit_code() const;
};

std::string_view name(Reason reason);

}  // namespace belljar
