// How belljar and its commands are used, in words: from the tables of commands
// and keys.
#pragma once

#include "cli/commands.h"
#include "policy/keys.h"

namespace belljar::cli {

// To stdout; of belljar itself where `command` is null. Returns the exit code.
int print_help(const Subcommand* command);

std::unexpected<Error> unknown_command(std::string_view name);

// A key can be given more than once.
bool is_repeatable(Kind kind);

}  // namespace belljar::cli
