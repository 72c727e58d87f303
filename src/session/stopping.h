// Stopping: how a call comes to its end when it does not by itself.
#pragma once

#include <functional>

#include "belljar/session.h"
#include "session/aside.h"
#include "session/async_jar.h"
#include "session/capture.h"

namespace belljar::session {

// Why a call was ended before it had answered.
enum class Stop { none, timeout, cpu_limit, asked };

// A call that runs in `process`.
struct Running {
  AsyncJar& jar;
  Process& process;
  std::function<bool()> over;       // it has answered, or never will
  std::function<void()> make_stop;  // it was asked and did not
  const bool& asked_to_stop;
};

struct Stopped {
  Stop why = Stop::none;
  bool killed = false;
};

// Until init has started the process, with exec and all. A guest can stop what init starts
// before it is executed, and so init itself: then everything in the jar is ended.
Async<Status> await_start(AsyncJar& jar, Process& process);

// Until it is `over`: ready, or never going to be; or `time` is. A guest that keeps stopping it
// loses its jar, at the latest when nobody has the patience to wait longer.
Async<Status> await_ready(AsyncJar& jar, Process& process, std::function<bool()> over,
                          std::chrono::milliseconds time, Patience patience);

// Until it is over. At its time it is sent SIGINT, and after the grace made to stop.
Async<Stopped> await_end(Running running, Clock::time_point deadline,
                         std::chrono::milliseconds grace);

// Until the process has gone, which it was told to; else its whole jar goes.
Async<void> await_death(AsyncJar& jar, Process& process);

// "SIGSEGV".
std::string signal_name(int signal);

// What it wrote.
Async<void> tell_output(CallReport& report, Capture::Taken output, const Beside& beside);
// It was interrupted before it had begun.
void tell_not_begun(CallReport& report);
// What the end of a call says beside its answer.
void tell_stop(CallReport& report, const Stopped& stopped);
// The same, where it was the whole jar that ended.
void tell_limit(CallReport& report, const AsyncJar& jar);
// Limits that the guest ran into without being ended by them: those that were seen, and
// those that `said`, its own words on why it failed, speaks of.
void tell_felt_limits(CallReport& report, const AsyncJar& jar, std::string_view said);
// Where `said` speaks of a network that the policy does not give: what there is. Empty: it
// does not.
std::string about_network(const Policy& policy, std::string_view said);

}  // namespace belljar::session
