// run: start a plan, watch over it, and say how it ended.
#pragma once

#include <functional>

#include "launcher/launch.h"

namespace belljar {

struct Supervision {
  // Pass the signals that ask a program to do something on to the guest, and
  // share the terminal with it. For a program that is nothing but the supervisor;
  // needs the signals of `supervised_signals` blocked.
  bool forward_signals = false;
};

// The signals a forwarding supervisor takes care of.
sigset_t supervised_signals();

Result<Outcome> run(const Plan& plan, const Command& command, Supervision supervision = {});

// Plans for a host that is supposed to have everything, and only if that does not
// start looks at what this one really has and plans again. `about_to_run` sees the
// plan before each try, and may refuse it.
Result<Outcome> run(const Policy& policy, const Caller& caller, const Command& command,
                    Supervision supervision,
                    const std::function<Status(const Plan&)>& about_to_run);

}  // namespace belljar
