// What a policy shows in the workdir of each session: credentials whose destination is
// relative to it. The plan mounts them; here are the folders that it mounts them on.
#pragma once

#include "base/result.h"
#include "belljar/policy.h"

namespace belljar::session {

// Makes what is missing. In a workdir that sessions share a guest may have been before, so no
// link is followed.
Status make_shown_folders(int workdir_fd, const Files& files);
// What sessions of different workdirs have in common.
void forget_shown(Files& files);

}  // namespace belljar::session
