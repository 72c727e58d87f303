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

}  // namespace belljar
