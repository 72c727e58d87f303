// A temporary folder for a jar that has no memory-backed ones.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace belljar {

// Where they are made.
inline constexpr const char* kScratchFolder = "/tmp";

// Names of what a process makes in folders that it shares with others of its kind, by which the
// next one sees that its maker has ended: `belljar-PID-SPACE-`, and six letters or digits.
std::string makers_prefix();
bool maker_is_gone(std::string_view name);

// Mode 0700, named after this process.
Result<std::string> make_scratch_folder();

// Removes those of processes that ended before they had removed theirs, until it is given up.
// Guests can have made them large.
void remove_stale_scratch_folders(const std::function<bool()>& gives_up = {});

}  // namespace belljar
