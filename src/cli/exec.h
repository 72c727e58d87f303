// Running a command under settings, as `exec` and `run` do.
#pragma once

#include "cli/cli.h"
#include "launcher/wait.h"
#include "policy/load.h"

namespace belljar::cli {

struct Run {
  Loaded loaded;  // from all sources
  Arguments command;
  std::string report;  // a file for the outcome as JSON; empty: none
};

// The exit code that belljar should have.
Result<int> run_loaded(const Run& request);

// A whole home, or more, is rarely what a person means to hand over.
Status check_workdir(const Loaded& loaded, const Caller& caller);

}  // namespace belljar::cli
