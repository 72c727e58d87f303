// A person at a session of a running server: a prompt of its Python or its shell, which others use
// at the same time. It stops nothing that they have begun, and leaves what it found.
#pragma once

#include "cli/local_http.h"

namespace belljar::cli {

enum class Prompted { python, shell };

Result<int> attach(const LocalHttp& server, const std::string& id, Prompted prompted);

}  // namespace belljar::cli
