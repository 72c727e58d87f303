// start: from a policy to a live jar on whatever this host can do.
#pragma once

#include <functional>
#include <span>

#include "launcher/launch.h"

namespace belljar::launcher {

struct Started {
  Plan plan;
  Jar jar;
};

// What kind of jar, and where it is born.
struct Origin {
  Role role = Role::guest;
  const Beneath* beneath = nullptr;  // for a joinable one
};

// Sees the plan before each try, and may refuse it.
using AboutToRun = std::function<Status(const Plan&)>;

// Plans for what `host` says, and only if that was supposed and does not start looks
// at what this one really has (and remembers it there) and plans again.
Result<Started> start(const Policy& policy, const Caller& caller, Host& host, const Command* first,
                      const AboutToRun& about_to_run, const broker::OnEvent& on_event = {},
                      const Origin& origin = {});

// The guest inherits these, so they must not lead out of the jar: from a folder the
// host's root can be reached, and a socket of the host's network can be connected anew.
Status check_stdio(const Policy& policy, const std::array<int, 3>& fds);

// One of them is a file that is only read. Where a jar can empty files that it does not own a
// name of, start() takes that from who is given one; who comes later is not given one.
bool reads_a_file(std::span<const int> fds);
bool can_empty_files(const Plan& plan);

}  // namespace belljar::launcher
