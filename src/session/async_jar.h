// AsyncJar: a jar on the event loop. It hears what init says, looks after the limits, and
// tells whoever started a process when that has ended.
#pragma once

#include <algorithm>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>

#include "base/loop.h"
#include "launcher/start.h"
#include "launcher/verdict.h"
#include "session/aside.h"
#include "session/warm.h"

namespace belljar::session {

// A process that was spawned into a jar.
struct Process {
  Process(Loop& loop, std::uint32_t number) : id(number), changed(loop) {}
  bool ended() const { return status.has_value() || exec_error != 0; }

  const std::uint32_t id;
  pid_t pid = 0;                 // inside, once it has started
  std::optional<int> status;     // as wait(2) tells it
  int exec_error = 0;            // it could not be executed
  bool no_folder = false;        // since the folder to start in could not be entered
  bool stopped = false;          // by a signal, and not continued
  int signals_under_way = 0;     // that init has not sent yet
  std::optional<Forked> forked;  // it came from a warm interpreter, and init does not know it
  Signal changed;                // any of this, or a limit of the jar
};

// What is said when a guest stops whatever is started in its jar.
inline constexpr const char* kKeepsFromStarting =
    "a process of the guest's keeps new ones from starting";
inline constexpr const char* kStartsAnew =
    "everything in the session was ended; the next call starts anew";

// How long somebody waits for a process to start.
struct Patience {
  Clock::time_point until = Clock::time_point::max();
  std::function<bool()> given_up = [] { return false; };
};

// A guest stops what starts in its jar. It may once; but not so that it does not start.
class Stops {
 public:
  explicit Stops(Clock::time_point until) : until_(until) {}
  void see() { first_ = first_.value_or(Clock::now()); }
  bool too_many() const {
    return first_ && Clock::now() >= std::min(until_, *first_ + std::chrono::seconds(5));
  }

 private:
  Clock::time_point until_;
  std::optional<Clock::time_point> first_;
};

class AsyncJar : public std::enable_shared_from_this<AsyncJar> {
 public:
  // Where it does what a guest can make long.
  struct Asides {
    Aside& watching;
    Aside& ending;
    std::string owner = {};  // whose turn to end it is
  };
  static Result<std::shared_ptr<AsyncJar>> make(Loop& loop, Asides asides,
                                                launcher::Started started);
  AsyncJar(const AsyncJar&) = delete;
  AsyncJar& operator=(const AsyncJar&) = delete;
  ~AsyncJar() = default;

  Result<std::shared_ptr<Process>> spawn(launcher::Command command);
  // A fork of the warm interpreter, whose origin() the jar has; `control_fd` as its 3. A guest
  // that keeps stopping it on its way loses its jar.
  Async<Result<std::shared_ptr<Process>>> fork(std::shared_ptr<Warm> warm, int control_fd,
                                               std::array<int, 3> stdio_fds, Patience patience);
  // To its group. Nothing happens if it has ended.
  void signal(const Process& process, int signal);
  // Init tells when a process of its own was stopped; of a fork, /proc does.
  void look_for_stop(Process& process) const;
  // A worker has no terminal that it could be stopped from: the guest did it.
  void continue_stopped(Process& process);

  // SIGKILL to what it has started at this process_clock() or later.
  void kill_descendants(const Process& process, std::uint64_t since);
  // SIGKILL to it alone, and not to its group.
  void kill_only(const Process& process);

  bool alive() const { return !ended_; }
  // Why it has ended, where it was a limit.
  std::optional<Reason> ended_by() const { return ended_by_; }
  // Ends everything inside.
  void end();
  // Waits for what may be left of it after its end; not for the loop.
  std::function<void()> wait_for_the_rest() const;

  // A call begins or ends: CPU time counts anew. Between calls limits are looked at less often.
  void begin_call();
  void end_call();
  // The call has used up its CPU time. The jar lives on: who made the call ends it.
  bool out_of_cpu() const { return out_of_cpu_; }
  // The call that ended last, or others at its time, had as many processes as they may.
  bool procs_were_full() const { return procs_were_full_; }

  Loop& loop() { return loop_; }
  const Plan& plan() const { return *plan_; }
  // For other threads, which may still look at it when the jar has gone.
  std::shared_ptr<const Plan> shared_plan() const { return plan_; }
  std::optional<uid_t> uid() const { return jar_.uid(); }  // where it is not the engine's
  // What is known of it now; if that is older than a quarter of a second, it is measured anew.
  std::uint64_t memory_kb();
  bool is_measuring() const { return !ended_ && watch_.is_measuring(); }

 private:
  static constexpr std::uint32_t kFirstFork = 1U << 31;  // init counts from 1

  AsyncJar(Loop& loop, Asides asides, launcher::Started started);
  static Async<void> hear(std::shared_ptr<AsyncJar> self);
  static Async<void> watch_end(std::shared_ptr<AsyncJar> self);
  static Async<void> watch_limits(std::shared_ptr<AsyncJar> self);
  static Async<void> watch_fork(std::shared_ptr<AsyncJar> self, std::shared_ptr<Process> process);
  void take_events();
  void act_on(const launcher::Event& event);
  void end_for(std::optional<Reason> reason);

  Loop& loop_;
  Aside& ending_;
  std::string owner_;
  std::shared_ptr<const Plan> plan_;
  launcher::Jar jar_;
  launcher::LimitWatch watch_;
  Stream control_;
  Stream pidfd_;
  asio::steady_timer tick_;
  std::map<std::uint32_t, std::shared_ptr<Process>> processes_;
  std::uint32_t last_fork_ = kFirstFork;
  int calls_ = 0;
  std::chrono::steady_clock::time_point call_began_;
  bool out_of_cpu_ = false;
  bool procs_were_full_ = false;
  bool pids_limit_hit_ = false;  // before this call
  bool ended_ = false;
  std::optional<Reason> ended_by_;
  std::shared_future<void> rest_;  // valid: it has ended, and this is when all of it has
};

}  // namespace belljar::session
