// A temporary folder for a jar that has no memory-backed ones.
#pragma once

#include <string>

#include "base/result.h"

namespace belljar {

// Mode 0700, named after this process. Folders of processes that were killed
// before they could remove theirs are removed here.
Result<std::string> make_scratch_folder();

}  // namespace belljar
