// Skills in a session: each is mounted read-only in the workdir, at skills/NAME. On a host
// where a guest has no view of its own, a link leads to where it lies, which the policy then
// only lets it read: the guest can remove the link, and nothing else.
#pragma once

#include "server/app.h"

namespace belljar::server {

// Into the policy of a session that is to be made.
std::expected<void, Response> grant_skills(const App& app, const std::vector<std::string>& wanted,
                                           const Principal& principal, SessionEntry& entry);
// Links, where they are needed, in one that was made, before anything runs in it.
Async<Status> link_skills(App& app, const SessionEntry& entry);

}  // namespace belljar::server
