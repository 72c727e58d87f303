// A session's files for tools that work outside of it, as its guest sees them: what is
// hidden from the guest is hidden here, and what it may not write cannot be written.
#pragma once

#include "session/view.h"
#include "tools/workspace.h"

namespace belljar::server {

tools::Result<tools::Workspace> workspace_of(const session::SessionView& view);

}  // namespace belljar::server
