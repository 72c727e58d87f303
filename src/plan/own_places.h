// Belljar's own places: its configuration, what it trusts, tokens, the audit trail, the sockets
// of its servers. No guest sees them, in any profile, whatever is granted: they decide about the
// next run, and about other guests.
#pragma once

#include <string>
#include <vector>

#include "belljar/caller.h"
#include "layers/layout.h"
#include "plan/paths.h"

namespace belljar {

class OwnPlaces {
 public:
  OwnPlaces() = default;
  OwnPlaces(const Caller& caller, Tracer& tracer);

  // To be hidden, folders before what is in them. They need not be there.
  struct Place {
    std::string path;
    std::string real;  // without symlinks, as far as it is there
    bool is_folder;
  };
  const std::vector<Place>& places() const { return places_; }

  // Nobody grants them by name. What lies in them and belljar itself shows is no such grant.
  Status refuse(const std::string& real, std::string_view from) const;

 private:
  std::vector<Place> places_;
};

// A path without symlinks, as far as it is there.
std::string real_name(const std::string& path, Tracer& tracer);

// Sees to it that a folder is there, to be hidden, as long as a guest runs that could make it. A
// folder that was missing goes again with the last run that holds it; runs that start and end at
// the same time are what this is for. Where the guest could not make it either, it stays missing.
Status hold_folder(const std::string& real, Leftovers& leftovers);

}  // namespace belljar
