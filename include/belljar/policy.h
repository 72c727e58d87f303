// Policy: what the caller asks for. A plain value: copy it, compare it, print
// it, send it. It knows nothing about this host: which of it can be kept here,
// and by what, is the plan's to say.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace belljar {

enum class Mode {
  off,        // no sandbox at all
  automatic,  // every layer the host has; a required promise that none keeps is refused
  on,         // every promise is required
  full,       // every promise is required, and every layer must be there
};

// What a policy guarantees, by dimension. Order is the order of explanation.
enum class Promise { files, exceptions, network, processes, environment, limits, syscalls };
inline constexpr std::size_t kPromiseCount = 7;

// How much a promise matters when the host cannot keep it.
enum class Need {
  unasked,      // the policy does not make this promise
  best_effort,  // run without it and say so
  required,     // refuse to run without it
};

enum class Access {
  read,
  write,    // implies read
  hide,     // cannot be seen, inside a readable tree
  protect,  // cannot be changed, inside a writable tree
};

// One path and what may be done below it. The most specific path wins.
struct Grant {
  std::string path;  // absolute
  Access access = Access::read;
  std::string from;  // the key that asked for it, for explanations: "allow_read"
  bool operator==(const Grant&) const = default;
};

// A file or folder outside, shown read-only inside at another path.
struct Credential {
  std::string source;
  std::string destination;          // one that is relative lies in the workdir
  std::string from = "credential";  // who asked for it, for explanations
  bool operator==(const Credential&) const = default;
};

// What is readable before any grant.
enum class Reads {
  runtime,     // programs and libraries only, a synthetic /etc
  system,      // what an installed program needs: /usr, /etc, /opt, ...
  everything,  // the whole file system, less what is hidden
};

enum class Home {
  caller,     // the caller's own home folder, as far as it is granted
  temporary,  // empty, private, gone at the end
};

struct Files {
  Reads reads = Reads::system;
  bool writes_everything = false;
  bool toolchains = false;    // also discovered toolchains and PATH entries
  bool other_homes = false;   // with Reads::everything: other people's homes too
  bool services = false;      // with Reads::everything: /run too, where their sockets are
  std::vector<Grant> grants;  // absolute paths
  std::vector<std::string> hide_globs;
  std::vector<std::string> protect_globs;
  std::string workdir;  // absolute; empty: no workdir is granted
  Access workdir_access = Access::write;
  std::string workdir_inside;  // where the guest sees it; empty: at its own path
  std::string start_in;        // a folder that is shown, to start in; empty: the workdir
  Home home = Home::temporary;
  std::string home_dir;     // a folder of the caller's to use as home
  std::string home_inside;  // where the guest sees it; empty: at its own path
  std::string cache_dir;    // a folder for caches, writable
  bool private_tmp = true;
  std::string tmp_dir;  // a folder of the caller's to use as /tmp
  std::vector<Credential> credentials;
  bool operator==(const Files&) const = default;
};

enum class Network {
  none,      // no sockets but AF_UNIX
  loopback,  // an own loopback, on which processes inside can talk
  full,      // the host's network
  hosts,     // only the hosts named
};

// A port of the host's 127.0.0.1 that leads to a port of the guest's.
struct Published {
  std::uint16_t host_port = 0;
  std::uint16_t port = 0;
  bool operator==(const Published&) const = default;
};

struct Environment {
  bool everything = false;
  std::vector<std::string> pass;                         // names, `*` matches any run
  std::vector<std::pair<std::string, std::string>> set;  // last one wins
  bool system_path_only = false;  // PATH keeps only entries under system prefixes
  bool operator==(const Environment&) const = default;
};

// An absent limit is unlimited.
struct Limits {
  std::optional<std::uint64_t> memory_mb;
  std::optional<std::uint64_t> cpu_secs;
  bool cpu_renews = false;  // it is counted for each call of a session, and not for each process
  std::optional<std::uint64_t> procs;
  std::optional<std::uint64_t> open_fds;
  std::optional<std::uint64_t> file_sz_mb;
  std::optional<std::chrono::milliseconds> timeout;  // wall time of the command
  bool operator==(const Limits&) const = default;
};

enum class Syscalls {
  deny_list,   // everything but what sandboxed programs never need
  allow_list,  // only what ordinary programs use
};

struct Policy {
  std::string profile;
  Mode mode = Mode::automatic;
  std::array<Need, kPromiseCount> needs{};
  std::vector<Promise> accepted;  // losses the caller accepts by name
  Files files;
  Network network = Network::none;
  std::vector<std::string> hosts;       // with Network::hosts: the rules, as written
  std::vector<std::string> deny_hosts;  // rules that win over those
  std::vector<Published> publish;       // with Network::hosts or loopback
  Environment environment;
  Limits limits;
  Syscalls syscalls = Syscalls::allow_list;
  bool operator==(const Policy&) const = default;

  Need need(Promise promise) const { return needs[static_cast<std::size_t>(promise)]; }
  void set_need(Promise promise, Need need) { needs[static_cast<std::size_t>(promise)] = need; }
};

std::string_view name(Promise promise);
std::string_view name(Mode mode);
std::string_view name(Network network);
std::string_view name(Access access);

}  // namespace belljar
