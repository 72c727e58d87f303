// Who speaks on a Unix socket. A guest has the number of its server's user, or root's, inside
// its user namespace, and the kernel reports that number for it.
#pragma once

namespace belljar::server {

// Root or this process's own user, in the pid and user namespace of this process.
bool is_outside(int fd);

}  // namespace belljar::server
