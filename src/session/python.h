// PythonWorker: one Python interpreter in a jar, which keeps its state from call to call.
//
// The program that it runs is worker.py, part of this binary. They speak frames over two
// pipes of their own; what the guest prints goes through others and cannot be taken for an
// answer. Pipes and no socket: over a socket a guest can send descriptors, and to close one of
// its own making can hold up the event loop as long as the guest likes. The guest can still do as
// it likes with the interpreter, and so with the answers: each is taken for what this guest says of
// itself, and nothing more.
#pragma once

#include <memory>
#include <string>

#include "belljar/session.h"
#include "session/aside.h"
#include "session/async_jar.h"
#include "session/capture.h"
#include "session/frames.h"
#include "session/messages.h"
#include "session/stopping.h"

namespace belljar::session {

class PythonWorker : public std::enable_shared_from_this<PythonWorker> {
 public:
  static Async<Result<std::shared_ptr<PythonWorker>>> start(std::shared_ptr<AsyncJar> jar,
                                                            const SessionSettings& settings,
                                                            Beside beside,
                                                            std::shared_ptr<Warm> warm = nullptr,
                                                            Patience patience = {});
  PythonWorker(const PythonWorker&) = delete;
  PythonWorker& operator=(const PythonWorker&) = delete;
  ~PythonWorker();

  // One at a time. Whatever the guest does, this ends soon after its time.
  Async<PythonResult> execute(const PythonCall& call, std::chrono::milliseconds timeout,
                              std::chrono::milliseconds grace);
  // Asks the call that runs, if one does, to stop.
  void interrupt();

  // Forked from an interpreter that had everything imported; else, if that was tried, why not.
  bool is_warm() const { return is_warm_; }
  const std::string& why_cold() const { return why_cold_; }

  bool alive() const { return !broken_ && !process_->ended(); }
  void kill();
  // The interpreter alone; what it has started lives on.
  void retire();

 private:
  struct Call {
    std::uint64_t id = 0;
    std::optional<Done> done;
    PythonResult result;
    std::function<bool(std::size_t)> may_keep;
    std::size_t kept_bytes = 0;  // of the answer, without output and files
    std::size_t dropped = 0;     // displays
    bool is_cut = false;         // its result, which was too long
  };

  PythonWorker(std::shared_ptr<AsyncJar> jar, std::shared_ptr<Process> process,
               std::unique_ptr<Capture> capture, Fd requests, Fd answers, std::size_t max_output,
               Beside beside);
  static Async<void> read(std::shared_ptr<PythonWorker> self);
  static Async<void> write(std::shared_ptr<PythonWorker> self);
  Async<Status> get_ready(Patience patience);
  Async<void> await_own_end();
  void send(std::string bytes);
  Async<void> take(std::string_view bytes);
  void take(Message message);
  void take(Display display);
  void take(Done done);
  bool may_keep(std::size_t bytes);
  void finish(PythonResult& result, const Stopped& stopped);
  std::string how_it_ended() const;

  std::shared_ptr<AsyncJar> jar_;
  std::shared_ptr<Process> process_;
  std::unique_ptr<Capture> capture_;
  Stream requests_;
  Stream answers_;
  FrameReader frames_;
  std::size_t max_output_;
  Beside beside_;
  std::string outbox_;
  std::size_t sent_ = 0;  // of it
  bool is_warm_ = false;
  std::string why_cold_;
  bool ready_ = false;
  bool broken_ = false;  // it cannot be spoken with any more
  std::string fault_;    // why it had to be ended
  bool asked_to_stop_ = false;
  std::uint64_t last_id_ = 0;
  Call call_;
};

}  // namespace belljar::session
