// run: start one command in a jar, watch over it, and say how it ended. For a program
// that is the supervisor: it can share its terminal and its signals with the guest.
#pragma once

#include "launcher/start.h"

namespace belljar::launcher {

struct Supervision {
  // Pass the signals that ask a program to do something on to the guest, and
  // share the terminal with it. For a program that is nothing but the supervisor;
  // needs the signals of `supervised_signals` blocked.
  bool forward_signals = false;
  // Hears what the broker decides, at once and on another thread.
  broker::OnEvent on_network = {};
};

// The signals a forwarding supervisor takes care of.
sigset_t supervised_signals();

Result<Outcome> run(const Policy& policy, const Caller& caller, const Command& command,
                    const Supervision& supervision, const AboutToRun& about_to_run);

}  // namespace belljar::launcher
