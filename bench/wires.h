// A small network for bench/broker.cc, which leaves the machine's own alone: we move into a
// network namespace with a loopback and a cable, at whose other end a host waits.
#pragma once

#include <sys/types.h>

#include <string>

namespace bench {

inline constexpr char kHere[] = "198.51.100.1";   // us, besides 127.0.0.1
inline constexpr char kThere[] = "203.0.113.10";  // the other end, server.example

// Servers run at both ends until this ends.
class Wires {
 public:
  // Needs root. Exits where it is not to be had.
  Wires();
  ~Wires();
  Wires(const Wires&) = delete;
  Wires& operator=(const Wires&) = delete;

 private:
  std::string hosts_file_;
  pid_t here_ = -1, there_ = -1;
};

}  // namespace bench
