// Running a command under settings, as `exec` and `run` do.
#pragma once

#include "cli/cli.h"
#include "launcher/wait.h"
#include "policy/widening.h"

namespace belljar::cli {

struct Run {
  Settings settings;  // merged from all sources
  Arguments command;
  std::string report;            // a file for the outcome as JSON; empty: none
  std::string profile_name;      // as the person calls it; empty: the built-in's name
  std::optional<Reach> bound{};  // of a project that is not trusted
};

// The exit code that belljar should have.
Result<int> run_settings(const Run& run);

// Fills in BELLJAR_SANDBOX, checks the working folder, and makes the policy.
Result<Policy> policy_for(const Settings& settings, const Caller& caller);

}  // namespace belljar::cli
