// Whether the folder that a program would work on, because nobody named another, can be meant.
#pragma once

#include "base/result.h"
#include "belljar/caller.h"
#include "policy/settings.h"

namespace belljar {

// A whole home, or more, is rarely what a person means to hand over.
Status check_workdir(const Settings& settings, const Policy& policy, const Caller& caller);

}  // namespace belljar
