// Skills in a session: what each is read from is granted to be read, and a link in the
// workdir, skills/NAME, leads there. The grant is what makes it read-only: the guest can
// remove the link, and nothing else.
#pragma once

#include "server/app.h"

namespace belljar::server {

// Into the policy of a session that is to be made.
std::expected<void, Response> grant_skills(const App& app, const std::vector<std::string>& wanted,
                                           const Principal& principal, SessionEntry& entry);
// Into the workdir of one that was made, before anything runs in it.
Status link_skills(App& app, const SessionEntry& entry);

}  // namespace belljar::server
