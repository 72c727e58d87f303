// Why a command could not be started, as far as it can be found out from outside.
#pragma once

#include <string>
#include <vector>

#include "cli/cli.h"

namespace belljar::cli {

// What is remembered of a plan until the command has failed.
struct GuestsView {
  std::vector<std::string> trees;  // on the host; what the guest can see
  std::vector<std::string> links;  // that were made for it
  std::vector<std::string> environment;
  std::string workdir;  // on the host
};

GuestsView view_of(const Plan& plan);

Error not_started(const std::string& command, int error, const GuestsView& view);

}  // namespace belljar::cli
