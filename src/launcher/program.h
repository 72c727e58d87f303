// Code that belljar carries inside itself, as a file that can be executed or loaded.
#pragma once

#include <string_view>

#include "base/fd.h"

namespace belljar::launcher {

// In memory, without a name in any file system, and sealed: nobody changes it any more.
Result<Fd> make_program(const char* name, std::string_view image);

}  // namespace belljar::launcher
