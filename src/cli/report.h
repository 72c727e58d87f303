// The outcome of a run, as JSON and as the one line a person needs.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "belljar/outcome.h"

namespace belljar::cli {

// Whether it can be written, asked before the guest has run.
Status check_report(const std::string& path);
Status write_report(const std::string& path, const Policy& policy, const Outcome& outcome);

// One line about a decision, and one for each different thing that was denied.
std::string in_words(const NetworkEvent& event);
std::vector<std::string> denials(const std::vector<NetworkEvent>& events);

// What ended the guest and which flag changes it; empty when it ended by itself.
std::string last_words(const Policy& policy, const Outcome& outcome);

}  // namespace belljar::cli
