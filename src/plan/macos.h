// A plan for a Mac. It is made of values alone, so any host can make one: `belljar explain
// --platform=macos` prints it. See docs/macos.md for what it was not run on.
#pragma once

#include "belljar/caller.h"
#include "belljar/outcome.h"
#include "layers/layout.h"
#include "layers/seatbelt.h"

namespace belljar {

// A Mac with this caller's folders: which of those that the policy names are links, and which
// toolchains are there. It looks at this host, whatever it is.
seatbelt::Machine observe_mac(const Policy& policy, const Caller& caller);

// A folder that is made for the guest and removed after it.
struct Scratch {
  std::string folder;                    // empty: none is needed
  std::vector<std::string> folders;      // in it
  std::vector<seatbelt::Symlink> links;  // in it
};
struct MacFiles {
  Layout layout;
  Scratch scratch;
};

// The policy's files on that machine. There is no root of the guest's own: every place is at
// its own path, and private folders are elsewhere, where HOME and TMPDIR lead.
Result<MacFiles> make_mac_layout(const Policy& policy, const Caller& caller,
                                 const seatbelt::Machine& machine);

// What Plan is for Linux: all that a launch needs, and what it means.
struct MacPlan {
  Policy policy;
  Layout layout;
  seatbelt::Plan seatbelt;
  std::vector<std::string> environment;
  std::vector<Kept> kept;
  std::vector<Loss> losses;
  std::vector<std::string> warnings;
};

Result<MacPlan> resolve_for_mac(const Policy& policy, const Caller& caller,
                                const seatbelt::Machine& machine);

}  // namespace belljar
