// Whether the folders that a program would get, because nobody named others, can be meant.
#pragma once

#include "base/result.h"
#include "belljar/caller.h"
#include "policy/settings.h"

namespace belljar {

// A whole home, or more, is rarely what a person means to hand over.
Status check_workdir(const Settings& settings, const Policy& policy, const Caller& caller);

// What the system is made of is no workdir, by whatever name: the guest may write there. `real`
// has no symlinks.
Status refuse_system_folder(const std::string& real);

// The first, of a folder that was named by `flag`, and whether there is one. `anyway` is the flag
// that takes it nevertheless, where one does.
Status check_workspace(const std::string& flag, const std::string& folder, const Caller& caller,
                       const std::string& anyway = {});

// Whether there is a home by whose name the guest's own can be called.
Status check_home(const Files& files, const Caller& caller);

}  // namespace belljar
