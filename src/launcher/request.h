// A spawn request as init reads it.
#pragma once

#include <span>
#include <string>

#include "launcher/launch.h"

namespace belljar::launcher {

// Header and payload. Fails where the command cannot be expressed (a NUL in an
// argument, nothing to run, too long).
Result<std::string> encode_spawn(const Command& command, std::uint32_t id,
                                 const std::string& workdir,
                                 const std::vector<std::string>& environment);

// Where a shell with these variables would look for a command.
Result<std::vector<std::string>> paths_to_try(const std::string& command,
                                              const std::vector<std::string>& environment);

// Variables, NAME=value, with those of `over` in place of theirs.
std::vector<std::string> overlay(std::vector<std::string> variables,
                                 const std::vector<std::string>& over);

// Sends bytes, with descriptors on the first of them if given. Where the socket does not block:
// EAGAIN if init does not read, perhaps with a part sent, after which it cannot be spoken with.
Status send_all(int socket_fd, std::string_view bytes, std::span<const int> fds = {});

}  // namespace belljar::launcher
