// The outcome of a run, as JSON and as the one line a person needs.
#pragma once

#include <string>

#include "base/result.h"
#include "belljar/outcome.h"

namespace belljar::cli {

// Whether it can be written, asked before the guest has run.
Status check_report(const std::string& path);
Status write_report(const std::string& path, const Policy& policy, const Outcome& outcome);

// What ended the guest and which flag changes it; empty when it ended by itself.
std::string last_words(const Policy& policy, const Outcome& outcome);

}  // namespace belljar::cli
