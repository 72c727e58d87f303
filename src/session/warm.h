// Warm: a Python interpreter that has imported what sessions use, and forks into their jars.
//
//   caller's namespaces
//     └ J0, the interpreter's own jar        view, no network of its own, seccomp; no Landlock
//         └ J1, J2 …, the jars of sessions   born beneath J0 (launcher/beneath.h)
//
// A fork enters a session's jar, takes on every layer of that jar's plan (launcher/join.h) and
// only then runs the worker. J0 sees what the policy lets every session read, and nothing of
// any session; what a session is, its environment among it, only its own fork is told. So the
// memory that forks share is that of an interpreter which has met no guest.
//
// Forks share what is decided when a process starts: the places of libraries in memory and
// the secret of Python's hashes. A guest that learns them knows them of the next session too.
//
// Only an interpreter that no guest can have written is started (unwritten.h): its forks are the
// workers of all sessions.
//
// Where a jar cannot be joined there is an error, and the caller starts a worker the long way.
// With this object the interpreter ends after its last worker. When it ends by itself, its workers
// go on, and only how they end is not told any more. If the init of its jar ends, so do all jars
// beneath; this object does not end it while there are any.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/start.h"

namespace belljar::session {

// How the interpreter for sessions with this policy is confined. Sessions for which this is the
// same can share one.
Policy policy_of_interpreter(const Policy& sessions);

// A worker in its jar. Its process group, of which it is the leader, is `pid_inside`: signal it
// by Jar::signal_group.
struct Forked {
  pid_t pid_inside = 0;
  pid_t pid = 0;  // as this process numbers it
  Fd pidfd;       // readable when it has ended, whatever became of the interpreter
  Fd status_fd;   // readable when it has ended: ended() reads it

  // How it ended, as wait() tells it. nullopt: it has not. An error: the interpreter has ended,
  // so that nobody knows.
  Result<std::optional<int>> ended() const;
};

// Whether a process was stopped by a signal.
bool is_stopped(pid_t pid);

// A fork on its way into a jar. If this goes before it is there, so does the fork.
class Joining {
 public:
  Joining(Joining&&) noexcept = default;
  Joining& operator=(Joining&&) = delete;
  Joining(const Joining&) = delete;
  Joining& operator=(const Joining&) = delete;
  ~Joining();

  int fd() const { return forked_.status_fd.get(); }  // readable: step() has something to do
  // A guest of the jar can stop it on its way. Whether one had; it is continued.
  bool continue_if_stopped() const;
  // nullopt: not yet there. Blocks only to move it into the jar's cgroup, if there is one.
  Result<std::optional<Forked>> step();

 private:
  friend class Warm;
  Joining(Fd status, launcher::Jar& jar) : jar_(&jar) { forked_.status_fd = std::move(status); }
  Status let_go_on();
  Status meet(Fd pidfd);
  Status take_listener(std::uint32_t number);
  int pidfd() const { return forked_.pidfd ? forked_.pidfd.get() : born_.get(); }

  Forked forked_;
  Fd born_;  // its pidfd, from who forked it
  bool joined_ = false;
  launcher::Jar* jar_;
};

class Warm {
 public:
  // `policy` is that of the sessions. Returns when the interpreter is ready: after the imports.
  // `worker_source` defines prepare(preload), or prepare(preload, display_source) where there is
  // one, after_fork() and main(control_fd).
  static Result<Warm> start(const Policy& policy, const Caller& caller, Host& host,
                            std::string python, const std::vector<std::string>& preload,
                            std::string worker_source, const std::string& display_source = {});

  // How a jar is started that workers can be forked into. Good as long as this object.
  launcher::Origin origin() const { return {Role::joinable, beneath_.get()}; }

  // The worker's descriptors are `stdio`, and `control_fd` as 3. `environment`: NAME=value, over
  // the plan's. `session_jar` must stay where it is until the joining is over.
  Result<Joining> begin_fork(launcher::Jar& session_jar, const Plan& session_plan, int control_fd,
                             const std::array<int, 3>& stdio,
                             const std::vector<std::string>& environment = {});
  // The same, waiting until the worker is there: some milliseconds.
  Result<Forked> fork_into(launcher::Jar& session_jar, const Plan& session_plan, int control_fd,
                           const std::array<int, 3>& stdio,
                           const std::vector<std::string>& environment = {});

  int alive_fd() const { return control_.get(); }  // readable: it has ended
  bool alive() const;
  // Starts the interpreter again in the jar it has, so that the jars beneath stay.
  Status revive();
  // It forks no more, and ends when its last worker has.
  void retire() { control_.reset(); }

  // Its own jar.
  const Plan& plan() const { return home_->plan; }
  const launcher::Jar& jar() const { return home_->jar; }

 private:
  // What is sent to the interpreter.
  struct Sources {
    std::string python, worker;
    std::string arguments;  // of prepare(), as JSON
  };

  Warm(launcher::Started started, Sources sources);
  Status check_fits(const Plan& session_plan) const;

  Sources sources_;
  std::shared_ptr<launcher::Started> home_;
  std::unique_ptr<launcher::Beneath> beneath_;
  Fd control_;
};

}  // namespace belljar::session
