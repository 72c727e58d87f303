// belljar: run code that you do not trust.
//
//   belljar::Policy policy = *belljar::profile("restricted");
//   policy.files.workdir = "/srv/job";           // the one folder it may write
//   policy.limits.timeout = std::chrono::seconds(10);
//   auto outcome = belljar::run(policy, {.arguments = {"python3", "job.py"}});
//   if (!outcome) fail(outcome.error().message());  // WE could not: nothing has run
//   use(outcome->exit_code(), outcome->out);        // how the guest ended
//
// A Result is a value or an Error (std::expected). An Error is always ours; whatever
// the guest did, even being killed, is an Outcome. A promise of the policy that this
// host cannot keep is an Error too, unless the policy calls it best effort, and then
// it stands in Outcome::losses.
//
// In your program:
// - There are no threads, no signal handlers and no state between calls. Several
//   threads may call at once, each on its own Jar or Pool; other threads may fork,
//   and every descriptor of ours is close-on-exec.
// - A launch costs the same however large the program is.
// - Each jar has one child process of yours, which ends with the jar, and with your
//   program, however that ends. If you reap every child yourself (waitpid(-1), or
//   SIGCHLD ignored), the outcome lacks CPU time and peak memory, and nothing else.
// - A process that you fork must not use the jars it inherits; destroying them there
//   does nothing.
//
// Needs Linux 5.13. What is enforced where, and what is not: docs/threat-model.md.
#pragma once

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "belljar/caller.h"
#include "belljar/error.h"
#include "belljar/outcome.h"
#include "belljar/policy.h"

namespace belljar {

namespace launcher {
class Live;
}

// A built-in policy to start from: "open", "developer", "restricted", "public-bot"
// or "trusted-maintenance". No workdir is granted until you name one.
Result<Policy> profile(std::string_view name);

// What would be enforced on this host and what not, and why, as text for people.
// Nothing is started but short probes.
Result<std::string> explain(const Policy& policy, const Caller& caller = this_process());

// One command and where its standard streams lead. A descriptor is borrowed until
// the command has started. It must not be a folder, nor (unless the network is full) a
// network socket, since through either the guest would get out.
struct Command {
  std::vector<std::string> arguments;  // the first is looked for in the guest's PATH
  std::string folder;                  // where it starts, as seen inside; empty: the workdir
  std::vector<std::pair<std::string, std::string>> environment;  // over the policy's
  std::string input;  // what it reads from 0 when `in_fd` is -1; may be empty
  int in_fd = -1;
  int out_fd = -1;                                // -1: kept in Outcome::out
  int err_fd = -1;                                // -1: kept in Outcome::err
  std::size_t max_output = std::size_t{1} << 20;  // of each that is kept; what is more is dropped
};

// Runs one command in a jar of its own and waits for it. When it ends everything that
// it started ends.
Result<Outcome> run(const Policy& policy, const Command& command,
                    const Caller& caller = this_process());

// A command that runs in a jar. Destroying it leaves the command running and its
// output dropped.
class Process {
 public:
  Process(Process&&) noexcept;
  Process& operator=(Process&&) noexcept;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();

  // Blocks until it has ended. Its CPU time and memory are part of its jar's, and zero
  // here. Waiting again gives the same.
  Result<Outcome> wait();
  // nullopt: it is still running after that time.
  Result<std::optional<Outcome>> wait_for(std::chrono::milliseconds time);

  // Sends a signal to its process group. (What has left the group ends with the jar.)
  Status kill(int signal = SIGKILL);

 private:
  friend class Jar;
  Process(std::shared_ptr<launcher::Live> jar, std::uint32_t id);

  std::shared_ptr<launcher::Live> jar_;
  std::uint32_t id_;
  std::optional<Outcome> outcome_;
};

// One live sandbox, kept for several commands, which see the same files and one
// another. It ends with this object. For one thread at a time, with its processes.
//
// The policy's timeout is that of each command. Its other limits are for all of them
// together; where no cgroup counts them (`explain` says so) they are counted while
// somebody waits for a Process of this jar.
class Jar {
 public:
  static Result<Jar> start(const Policy& policy, const Caller& caller = this_process());
  Jar(Jar&&) noexcept;
  Jar& operator=(Jar&&) noexcept;
  Jar(const Jar&) = delete;
  Jar& operator=(const Jar&) = delete;
  ~Jar();

  // A command that cannot be executed is no error: its outcome says not_started.
  Result<Process> spawn(const Command& command);

  // False once everything inside has been ended: by `end`, by a limit, or from outside.
  bool alive() const;
  // Ends everything inside. What its processes left is still theirs to wait for.
  void end();

  const std::vector<Kept>& kept() const;
  const std::vector<Loss>& losses() const;

 private:
  friend class Pool;
  explicit Jar(std::shared_ptr<launcher::Live> live);

  std::shared_ptr<launcher::Live> live_;
};

// Jars that wait, so that taking one costs no launch. Nothing is refilled behind your
// back: call `fill` when there is time. For one thread at a time.
class Pool {
 public:
  Pool(Policy policy, std::size_t size, Caller caller = this_process());
  Pool(Pool&&) noexcept;
  Pool& operator=(Pool&&) noexcept;
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool();

  // Starts jars until `size` are ready.
  Status fill();
  // A ready one, or a new one when none is.
  Result<Jar> take();
  std::size_t ready() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace belljar
