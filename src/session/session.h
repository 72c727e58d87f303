// Session: one jar with one workdir, in which a Python worker, a shell and other processes
// live together and see the same files. The jar is started by the first call, and again
// by the next one after everything in it was ended; the files stay.
#pragma once

#include <memory>
#include <string>

#include "belljar/caller.h"
#include "session/files.h"
#include "session/program.h"
#include "session/python.h"
#include "session/shell.h"
#include "session/turns.h"

namespace belljar::session {

// What all sessions of an engine have in common.
struct Common {
  Loop& loop;
  Caller caller;
  Host host;
  SessionSettings settings;
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  // `folder` is where its workdir and home are made, and is removed at its end.
  static Result<std::shared_ptr<Session>> make(Common& common, std::string id, Policy policy,
                                               std::string folder);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  Async<Result<PythonResult>> python(PythonCall call);
  Async<Result<ShellResult>> shell(ShellCall call);
  // A program beside them. It ends with what is returned, and with the session.
  Async<Result<std::shared_ptr<Program>>> spawn(ProgramCall call);
  // A fresh interpreter; the jar and what else runs in it live on.
  Async<Status> reset();
  // Asks the calls that run to stop.
  void interrupt();
  // Ends everything inside. Calls that wait answer with an error.
  void end();

  const std::string& id() const { return id_; }
  bool busy() const { return calls_ > 0; }
  Clock::time_point last_used() const { return last_used_; }
  std::uint64_t memory_kb() { return jar_ != nullptr ? jar_->memory_kb() : 0; }
  // Said in the answer of the next call.
  void note(std::string text) { notes_.push_back(std::move(text)); }

 private:
  class Busy;
  Session(Common& common, std::string id, Policy policy, std::string folder);
  Status start_jar();
  Async<Status> start_python();
  Async<Status> start_shell();
  std::chrono::milliseconds time_for(std::optional<std::chrono::milliseconds> asked,
                                     std::chrono::milliseconds usual, CallReport& report) const;
  void add_files(CallReport& report, const std::vector<std::string>& wanted);
  void add_notes(CallReport& report);

  Common& common_;
  std::string id_;
  Policy policy_;
  std::string folder_;
  Fd workdir_;
  Snapshot files_;
  std::shared_ptr<AsyncJar> jar_;
  std::shared_ptr<PythonWorker> python_;
  Turns python_turns_;
  std::shared_ptr<ShellWorker> shell_;
  Turns shell_turns_;
  std::string shell_folder_;  // where the next shell begins
  int calls_ = 0;
  bool ended_ = false;
  Clock::time_point last_used_ = Clock::now();
  std::vector<std::string> notes_;
};

}  // namespace belljar::session
