// Stopping: how a call comes to its end when it does not by itself.
#pragma once

#include <functional>

#include "belljar/session.h"
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

// Until it is over. At its time it is sent SIGINT, and after the grace made to stop.
Async<Stopped> await_end(Running running, Clock::time_point deadline,
                         std::chrono::milliseconds grace);

// Until the process has gone, which it was told to; else its whole jar goes.
Async<void> await_death(AsyncJar& jar, Process& process);

// "SIGSEGV".
std::string signal_name(int signal);

// What it wrote.
void tell_output(CallReport& report, const Capture::Taken& output);
// What the end of a call says beside its answer.
void tell_stop(CallReport& report, const Stopped& stopped);
// The same, where it was the whole jar that ended.
void tell_limit(CallReport& report, const AsyncJar& jar);

}  // namespace belljar::session
