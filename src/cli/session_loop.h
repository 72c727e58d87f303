// One session at a terminal: an engine, its loop, and Ctrl-C.
#pragma once

#include <memory>

#include "cli/cli.h"
#include "cli/terminal_filter.h"
#include "policy/load.h"
#include "session/engine.h"

namespace belljar::cli {

class TerminalSession {
 public:
  static Result<std::unique_ptr<TerminalSession>> start(const Loaded& loaded);

  // Each blocks until its answer is there. Ctrl-C asks the call to stop.
  Result<PythonResult> python(PythonCall call);
  Result<ShellResult> shell(std::vector<std::string> commands);

  // What a guest made, to stdout or stderr, as a terminal may have it.
  void print(OutputStream stream, std::string_view bytes);

  // Whether output is printed as it comes; else it is only in the answer.
  void set_streaming(bool streaming) { streaming_ = streaming; }

 private:
  TerminalSession();
  OnOutput printer();
  template <class T>
  Result<T> wait_for(Async<Result<T>> call);
  void listen_for_interrupt();

  Loop loop_;
  asio::signal_set interrupt_;
  std::unique_ptr<session::Engine> engine_;
  TerminalFilter out_, err_;
  bool streaming_ = true;
};

// The words of a call's report for a person who ran it from the command line.
void print_notes(const CallReport& report, const Policy& policy);

}  // namespace belljar::cli
