// seatbelt: a policy as a profile for macOS's own sandbox, and the command that starts a
// program under it: `/usr/bin/sandbox-exec -p PROFILE …`.
//
// A renderer: it turns values into text and needs no Mac, so it builds and is tested
// everywhere. Keeps files, exceptions, network (none and loopback) and processes. Does not do:
// limits, names of hosts, a root, /tmp or /proc of the guest's own; see docs/macos.md.
//
// Seatbelt judges a file by its real path, and the last rule that matches decides. So rules go
// from the shortest path to the longest, and the most specific one wins, as in every layer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "belljar/policy.h"

namespace belljar {
struct Layout;
}

namespace belljar::seatbelt {

struct Symlink {
  std::string path;  // where it is, by its real path
  std::string text;  // what it says
  bool operator==(const Symlink&) const = default;
};

// A Mac, described: nothing here is looked at, so a plan can be made for one on any host.
struct Machine {
  std::vector<Symlink> links;        // all that a path of the policy may lead through
  std::vector<std::string> folders;  // known to be there, beside the system's
  std::string scratch;               // where the guest's private home and /tmp will be
  std::uint64_t processes = 0;       // of the caller's: the limit is headroom above them
};

// One as it is installed.
Machine plain_mac();

struct Traced {
  std::string path;                // real
  std::vector<std::string> links;  // that were followed, by their real paths
};

// ELOOP is the only error: what is not among the links is taken as it stands.
Result<Traced> trace(const Machine& machine, std::string_view path);

// All that a launch needs. A plain value.
struct Plan {
  std::string profile;               // SBPL
  std::vector<std::string> wrap;     // the arguments that come before the command
  std::string workdir;               // where the guest starts
  std::string scratch;               // made for the guest and removed after it; may be empty
  std::vector<std::string> folders;  // to be made in it
  std::vector<Symlink> links;        // to be made in it
  std::optional<std::uint64_t> watched_memory_mb;  // by the supervisor: no rlimit would do it
  std::optional<std::uint64_t> watched_cpu_secs;   // of all processes together
};

// Of the layout its places (`path` is the real one, `inside` the one that was given), its links
// and whether the whole root is shown.
Result<Plan> resolve(const Policy& policy, const Layout& layout, const Machine& machine);

}  // namespace belljar::seatbelt
