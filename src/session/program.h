// Program: any other program in a session's jar, with pipes or a terminal of its own.
#pragma once

#include <memory>

#include "belljar/session.h"
#include "session/async_jar.h"
#include "session/capture.h"

namespace belljar::session {

// How a program that was run to its end came there.
struct ProgramEnd {
  ProgramState state;
  bool timed_out = false;
  bool interrupted = false;
  std::chrono::milliseconds time{};
  std::vector<std::string> notes;
};

class Program : public std::enable_shared_from_this<Program> {
 public:
  static Async<Result<std::shared_ptr<Program>>> start(std::shared_ptr<AsyncJar> jar,
                                                       ProgramCall call, std::size_t max_output);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program();

  // What it will read, when it does.
  Status write(std::string_view bytes);
  // Bytes of it that it has not read yet.
  std::size_t unread() const { return outbox_.size() - sent_; }
  // It reads the end. A terminal has no end but what its user types: ^D.
  Status close_input();
  Status resize(std::uint16_t rows, std::uint16_t columns);
  void signal(int signal) { jar_->signal(*process_, signal); }
  // What it has written since this was last asked.
  ProgramState read();
  // Until it has ended, or that time has come.
  Async<ProgramState> wait(Clock::time_point until);
  // Until it has written what was not read yet, has ended, or that time has come. Of those
  // that wait for a program only one may at a time.
  Async<void> wait_for_news(Clock::time_point until);
  // The same, and what it has written is left for later. True: it has ended.
  Async<bool> ended(Clock::time_point until);
  bool running() const { return !process_->ended(); }

 private:
  struct Ends;
  Program(std::shared_ptr<AsyncJar> jar, std::shared_ptr<Process> process, const ProgramCall& call,
          std::size_t max_output);
  static Result<Ends> open_pipes(Loop& loop, std::size_t max_output);
  static Result<Ends> open_terminal(Loop& loop, std::size_t max_output, const ProgramCall& call);
  static Async<void> send(std::shared_ptr<Program> self);
  void was_sent(std::size_t size);
  void end_of_input();
  void hear();

  std::shared_ptr<AsyncJar> jar_;
  std::shared_ptr<Process> process_;
  bool has_terminal_;
  Stream input_;  // its pipe, or the terminal's other side
  std::unique_ptr<Capture> capture_;
  std::size_t max_output_;
  OnOutput on_output_;
  std::string outbox_;
  std::size_t sent_ = 0;  // of it
  bool sending_ = false;
  bool has_news_ = false;  // since it was last read
  bool input_ends_ = false;
};

}  // namespace belljar::session
