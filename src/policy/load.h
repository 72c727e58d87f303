// What the sources of settings come to together. From the highest:
//
//   flags · the task · the project's belljar.toml · the person's config.toml ·
//   BELLJAR_SANDBOX (the mode only) · the default
//
// One value is taken from the highest source that has it; denies and lists add up.
// A person's own profile lies under all of them. Where no profile is named, flags
// that deny or allow start from `open`, and everything else from the default. A
// project that is not trusted may narrow what the others come to, and nothing else.
#pragma once

#include <string>
#include <vector>

#include "policy/config.h"
#include "policy/profiles.h"
#include "policy/widening.h"

namespace belljar {

struct Loaded {
  Settings settings;  // all sources together; `profile` is a built-in one, if any
  Policy policy;      // `profile` is the name that the person used, and each grant of a
                      // file or flag says which
  SessionSettings session;
  // The strictest of these counts. A project that is not trusted has its own beside the
  // person's; one that is trusted is asked first.
  std::vector<Permissions> permissions;
  ServerSettings server;
  // What the files of a project that is not trusted must stay within, whatever its paths
  // lead to when they are opened.
  std::optional<Reach> bound;
};

// `task` belongs to the project. Refuses what an untrusted project would widen.
Result<Loaded> load(const ConfigFiles& files, const ConfigPlaces& places, const Settings& flags,
                    const Task* task = nullptr);

// Something that a project asks for and may not have until it is trusted.
struct Widening {
  Position position;
  std::string what;  // a key or a profile
  std::string why;
  bool operator==(const Widening&) const = default;
};

// Of [sandbox] and the task, with these flags; in the order of the file.
Result<std::vector<Widening>> widenings(const ConfigFiles& files, const ConfigPlaces& places,
                                        const Settings& flags, const Task* task = nullptr);
// Of the whole file: [sandbox], every task, every profile.
Result<std::vector<Widening>> all_widenings(const ConfigFiles& files, const ConfigPlaces& places);

}  // namespace belljar
