// The flags that every command has: --help, --version, --quiet, --verbose, --color.
#pragma once

#include "cli/commands.h"
#include "cli/output.h"

namespace belljar::cli {

struct GlobalFlags {
  bool help = false;
  bool version = false;
  Output output;
};

// Takes them out of the arguments of `command`, or of belljar itself where that is
// null. What comes after the name of a program to run is the program's.
Status take_global_flags(Arguments& arguments, const Subcommand* command, GlobalFlags& into);

}  // namespace belljar::cli
