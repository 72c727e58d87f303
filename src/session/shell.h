// ShellWorker: one shell in a jar, which keeps its folder, variables, functions, options
// and background jobs from call to call.
//
// It is an interactive shell without a terminal, since only such a one goes on with its
// state after an interrupt. It reads its commands from a pipe as a person would type
// them, each in an `eval` of its own whose input is /dev/null, and after each says its
// exit code and folder on another descriptor. The guest can do that too, and so lie about
// its own commands.
#pragma once

#include <memory>
#include <string>

#include "belljar/session.h"
#include "session/async_jar.h"
#include "session/capture.h"
#include "session/stopping.h"

namespace belljar::session {

class ShellWorker : public std::enable_shared_from_this<ShellWorker> {
 public:
  static Async<Result<std::shared_ptr<ShellWorker>>> start(std::shared_ptr<AsyncJar> jar,
                                                           const SessionSettings& settings,
                                                           Beside beside, std::string folder);
  ShellWorker(const ShellWorker&) = delete;
  ShellWorker& operator=(const ShellWorker&) = delete;
  ~ShellWorker();

  // One at a time.
  Async<ShellResult> run(const ShellCall& call, std::chrono::milliseconds timeout,
                         const SessionSettings& settings);
  void interrupt();

  bool alive() const { return !broken_ && !mute_ && !process_->ended(); }
  // Where it is; after its end, where it was.
  const std::string& folder() const { return folder_; }
  void kill();

 private:
  ShellWorker(std::shared_ptr<AsyncJar> jar, std::shared_ptr<Process> process,
              std::unique_ptr<Capture> capture, Fd commands, Fd answers, std::string folder,
              Beside beside);
  static Async<void> read(std::shared_ptr<ShellWorker> self);
  static Async<void> write(std::shared_ptr<ShellWorker> self);
  void send(std::string text);
  void send_command(std::string line);
  void ask_for_answer();
  void ask_again();
  void take(std::string_view answer);
  Async<Stopped> run_commands(const ShellCall& call, ShellResult& result,
                              Clock::time_point deadline, std::chrono::milliseconds grace);
  void stop_what_runs();
  Async<void> settle();

  std::shared_ptr<AsyncJar> jar_;
  std::shared_ptr<Process> process_;
  std::unique_ptr<Capture> capture_;
  Stream commands_;
  Stream answers_;
  std::string outbox_;
  std::size_t sent_ = 0;  // of it
  bool writing_ = false;
  std::string inbox_;
  std::string folder_;
  Beside beside_;
  std::uint64_t last_id_ = 0;
  std::optional<int> status_;  // of the command that ran last, once it has ended
  bool broken_ = false;        // it was killed
  bool mute_ = false;          // it cannot answer any more
  bool asked_to_stop_ = false;
  std::uint64_t began_ticks_ = 0;  // the call, by process_clock()
  int stops_ = 0;                  // how often what ran was killed in this call
};

}  // namespace belljar::session
