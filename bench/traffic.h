// The two ends of the connections that bench/broker.cc measures: a server, and a client that
// times itself, so that starting a sandbox is not counted.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace bench {

// What the bytes look like. `hello` is a true ClientHello and a ServerHello in front of bytes that
// nobody encrypts: a relay that reads names sees TLS, and no cipher hides what it costs.
enum class Dress { plain, hello, tls };

enum class Deed {
  connect,  // one connection after the other: the time of connect(), and to the first byte back
  down,     // a bulk of bytes, from the first to the last
  up,
  hold,  // many connections at once, each echoes; they stay until we are told
};

inline constexpr char kServerName[] = "server.example";
inline constexpr std::uint16_t kFirstPort = 7000, kLastPort = 7099;

struct Visit {
  Deed deed{};
  Dress dress{};
  std::string host;         // an address, or kServerName
  bool by_proxy = false;    // CONNECT, to the proxy that the environment names
  std::uint64_t count = 0;  // connections, or bytes
};

// As words, for a command that is run in a sandbox.
std::vector<std::string> words_of(const Visit& visit);
Visit visit_of(const std::vector<std::string>& words);

// Writes what it measured into the file `took`, in nanoseconds. False: it did not work.
bool pay(const Visit& visit);

// Never returns. `ready` is called once it listens, on every address of its namespace.
[[noreturn]] void serve(const std::function<void()>& ready);

}  // namespace bench
