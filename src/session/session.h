// Session: one jar with one workdir, in which a Python worker, a shell and other processes
// live together and see the same files. The jar is started by the first call, and again
// by the next one after everything in it was ended; the files stay.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "belljar/caller.h"
#include "policy/widening.h"
#include "session/aside.h"
#include "session/files.h"
#include "session/output_file.h"
#include "session/program.h"
#include "session/python.h"
#include "session/shell.h"
#include "session/turns.h"
#include "session/view.h"
#include "session/warm_starts.h"

namespace belljar::session {

// What all sessions of an engine have in common.
struct Common {
  Loop& loop;
  Caller caller;
  Host host;
  SessionSettings settings;
  std::optional<Reach> bound;  // of a project that is not trusted
  // When nothing more is removed of what guests left: the next start does the rest.
  std::atomic<Clock::time_point> removing_ends = Clock::time_point::max();
  std::function<bool()> gives_up_removing() const {
    return [this] { return Clock::now() >= removing_ends.load(); };
  }
  // Apart, so that nobody who calls or starts waits for what others have left behind.
  Aside aside{};      // what a call waits for
  Aside launching{};  // jars, whose plans search for what globs match
  Aside starting{};   // interpreters that take their time
  Aside ending{};     // jars, of which the kernel has much to clear up
  Aside removing{};   // trees as large as guests made them
  Aside watching{};   // what guests can make long
  WarmStarts warm{loop, starting, caller, host, settings};
  // For what a session's owner waits for.
  Beside beside(const std::string& id) { return {aside, loop, owner_of(id)}; }
  // Whose a session is: nobody shall wait for what another asks for.
  std::function<std::string(const std::string& id)> owner_of = [](const std::string&) {
    return std::string();
  };
};

// A policy as sessions have it, without the folders of each.
Policy shared_by_sessions(Policy policy, const SessionSettings& settings);

class Session : public std::enable_shared_from_this<Session> {
 public:
  // `folder` is where its workdir and home are made, and is removed at its end.
  static Result<std::shared_ptr<Session>> make(std::shared_ptr<Common> common, std::string id,
                                               Policy policy, std::string folder);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  Async<Result<PythonResult>> python(PythonCall call);
  Async<Result<ShellResult>> shell(ShellCall call);
  // A program beside them. It ends with what is returned, and with the session.
  Async<Result<std::shared_ptr<Program>>> spawn(ProgramCall call);
  // A program that reads nothing, to its end or that of its time.
  Async<Result<ProgramEnd>> run(ProgramCall call, std::optional<std::chrono::milliseconds> asked);
  // A fresh interpreter; the jar and what else runs in it live on.
  Async<Status> reset();
  // Asks the calls that run to stop.
  void interrupt(Worker which = Worker::every);
  // Of the jar that runs, or of the one that would.
  Look look() const;
  // Ends everything inside. Calls that wait answer with an error.
  void end();

  const std::string& id() const { return id_; }
  bool busy() const { return calls_ > 0; }
  Clock::time_point last_used() const { return last_used_; }
  std::uint64_t number = 0;  // of all that its engine made
  std::uint64_t memory_kb() { return jar_ != nullptr ? jar_->memory_kb() : 0; }
  bool is_measuring() const { return jar_ != nullptr && jar_->is_measuring(); }
  // What who serves it keeps of it, for as long as it is there.
  std::shared_ptr<void> kept;
  // Said in the answer of the next call.
  void note(std::string text) { notes_.push_back(std::move(text)); }

 private:
  class Busy;
  Session(std::shared_ptr<Common> common, std::string id, Policy policy, std::string folder);
  Async<Status> start_jar();
  Async<Status> launch(std::shared_ptr<Warm> warm);
  Async<Status> start_python(std::chrono::milliseconds time);
  Async<Status> start_shell();
  std::chrono::milliseconds time_for(std::optional<std::chrono::milliseconds> asked,
                                     std::chrono::milliseconds usual, CallReport& report) const;
  Async<Result<std::shared_ptr<ShellWorker>>> shell_for(const ShellCall& call);
  void interrupt(const std::shared_ptr<Program>& program);
  // To the file as well, if one is asked for; else null.
  Result<std::shared_ptr<OutputFile>> add_output_file(const std::optional<std::string>& name,
                                                      OnOutput& listener) const;
  Async<void> note_files_before();
  Async<void> add_files(CallReport& report, std::vector<std::string> wanted);
  void add_notes(CallReport& report);
  Async<void> complete(CallReport& report, const AsyncJar& jar, std::string said,
                       std::vector<std::string> wanted, std::shared_ptr<OutputFile> file);

  const std::shared_ptr<Common> common_;
  std::string id_;
  Policy policy_;
  std::string folder_;
  Fd workdir_;
  Sight sight_;  // of the jar's guest
  Snapshot files_;
  Turns files_turns_;
  Policy plain_policy_;  // without its own folders: what sessions share
  std::optional<std::chrono::milliseconds> longest_call_;  // by its policy
  std::shared_ptr<Warm> warm_;                             // which the jar can be joined from
  std::shared_ptr<AsyncJar> jar_;
  Turns jar_turns_;
  std::shared_ptr<PythonWorker> python_;
  bool python_is_new_ = false;  // since the last call
  Turns python_turns_;
  std::shared_ptr<ShellWorker> shell_;
  Turns shell_turns_;
  std::string shell_folder_;  // where the next shell begins
  std::set<std::shared_ptr<ShellWorker>> one_shots_;
  std::set<std::shared_ptr<Program>> programs_;  // that are run to their end
  std::uint64_t interrupts_ = 0;                 // of everything
  std::uint64_t python_interrupts_ = 0;
  std::uint64_t shell_interrupts_ = 0;
  int calls_ = 0;
  bool ended_ = false;
  bool told_of_network_ = false;  // once is enough
  Clock::time_point last_used_ = Clock::now();
  std::vector<std::string> notes_;
};

// While a call runs or waits its session is not idle.
class Session::Busy {
 public:
  explicit Busy(Session& session) : session_(session) { ++session_.calls_; }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;
  ~Busy() {
    --session_.calls_;
    session_.last_used_ = Clock::now();
  }

 private:
  Session& session_;
};

}  // namespace belljar::session
