// join: how a process of another jar becomes one of this jar, in all of its layers.
//
// The other is a fork of a warm interpreter (session/warm.h). It enters the jar's namespaces
// through init's pidfd, drops what it gained by that, and takes on limits, Landlock ruleset
// and filter from here: joiner.cc. Init, and whoever is in the jar already, has no part in it.
#pragma once

#include <string>
#include <vector>

#include "launcher/join_protocol.h"
#include "launcher/launch.h"

namespace belljar::launcher {

// What the joiner is told: by the process that forks, and by the socket of its fork.
struct JoinRequest {
  join::Call call;
  std::string bytes;
  int ruleset_fd;  // the jar's; or -1
};

// An error where this jar cannot be joined: then a process can only be spawned in it.
// `environment`: NAME=value, over the plan's.
Result<JoinRequest> join_request(const Plan& plan, const Jar& jar,
                                 const std::vector<std::string>& environment = {});

// The child's side: the ruleset that the jar was restricted with. It cannot be made a second
// time, since some of its rules are about what only the child can open.
void hand_out_ruleset(int control_fd, int ruleset_fd, const Child& child) noexcept;
Result<Fd> receive_ruleset(int control_fd);

}  // namespace belljar::launcher
