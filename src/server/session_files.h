// The files of a session's workdir, for clients outside. All go through a Workspace, so that
// nothing a guest puts there leads anywhere else.
#pragma once

#include <boost/json/fwd.hpp>
#include <string>

#include "session/view.h"
#include "tools/workspace.h"

namespace belljar::server {

inline constexpr std::size_t kMaxListed = 10'000;

// All that the guest sees: what is hidden from it is hidden here, and what it may not write
// cannot be written.
tools::Result<tools::Workspace> workspace_of(const session::SessionView& view);

// The workdir and what lies in it; no other place of the session's.
tools::Result<tools::Workspace> files_of(const session::SessionView& view);

// A folder's names, in order.
tools::Result<boost::json::object> list_folder(const tools::Workspace& files,
                                               const std::string& path);
// A file, or a folder that is empty.
tools::Status remove_entry(const tools::Workspace& files, const std::string& path);

}  // namespace belljar::server
