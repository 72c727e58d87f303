// Jar: one live sandbox. Starting it builds every layer and parks its init;
// processes are then spawned into it. It ends with this object.
#pragma once

#include <sys/resource.h>

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "broker/broker.h"
#include "broker/connects.h"
#include "launcher/beneath.h"
#include "launcher/enter.h"
#include "launcher/protocol.h"
#include "launcher/watchdog.h"
#include "plan/plan.h"

namespace belljar::launcher {

struct Command {
  std::vector<std::string> arguments;
  std::string folder;                    // empty: the plan's workdir
  std::vector<std::string> environment;  // NAME=value, over the plan's
  std::array<int, 3> stdio_fds{0, 1, 2};
  // 0, 1 and 2 are all the caller's terminal, and it is the caller's turn to use it: the
  // guest is given it. Else none of the three may be it.
  bool has_terminal = false;
  // 0 is a terminal that was made for this command.
  bool owns_terminal = false;
  int control_fd = -1;  // what it finds as descriptor 3, if anything
  bool leads = true;    // the jar ends when this command does
  std::uint64_t signal_mask = 0;
};

// What init said.
struct Event {
  protocol::Kind kind;
  std::uint32_t id;
  std::uint32_t value;
};

// What a broker begins with, besides what it takes out of the jar.
struct BrokerParts {
  const net::Doors& doors;
  int go_fd;
  Fd sockets;
  const broker::OnEvent& on_event;
};

// A pipe belongs to whoever made it, and a guest with another uid could not open
// /dev/stdout, as scripts do. Each end in its own direction: who may write to a shared
// pipe may not therefore read what others wrote.
void let_guest_reopen(std::span<const int> fds);

class Jar {
 public:
  // With `first`, its request is waiting when init wakes up. `on_event` hears what the
  // broker decides, on the broker's thread. With `beneath`, it is born there; a joinable jar is.
  static Result<Jar> start(const Plan& plan, const Command* first = nullptr,
                           const broker::OnEvent& on_event = {}, const Beneath* beneath = nullptr);
  Jar(Jar&&) noexcept;
  Jar& operator=(Jar&&) noexcept;
  Jar(const Jar&) = delete;
  Jar& operator=(const Jar&) = delete;
  ~Jar();

  // Returns the id that events about it carry.
  Result<std::uint32_t> spawn(const Command& command);
  Status signal(std::uint32_t id, int signal);
  Status signal_all(int signal);  // everything in the jar
  // Continues everything, after the process was given the terminal: who reads too early is
  // stopped again.
  Status resume(std::uint32_t id, bool give_terminal);
  // `group` as the jar numbers it: of a process that joined, and so has no id here.
  Status signal_group(pid_t group, int signal);

  // What init has said, without waiting for it.
  Result<std::optional<Event>> next_event();

  int control_fd() const { return control_.get(); }
  int init_pidfd() const { return init_pidfd_.get(); }  // readable when init has ended
  // Asked before the last events are read, or one could be missed.
  bool has_ended() const;
  pid_t init_pid() const { return init_; }
  const cgroup::Group& group() const { return group_; }
  // What a process that joins needs besides init's pidfd. The uid: where it is not the caller's.
  int ruleset_fd() const { return ruleset_.get(); }
  std::optional<uid_t> uid() const;
  const PhaseClock& phases() const { return *phases_; }
  const std::shared_ptr<Watchdog>& watchdog() { return watchdog_; }
  broker::Broker* broker() { return broker_.get(); }
  bool has_watchdog() const { return watchdog_ != nullptr; }

  // Makes everything inside end; true when it has within that time. Then, or to wait for the
  // rest of it, end().
  bool kill(int wait_ms);
  // Ends everything inside, waits until it has ended, and returns what it used.
  rusage end();
  // After the end, when nothing more is asked about its cgroup.
  void release_group() { group_ = {}; }

 private:
  Jar() = default;
  Status launch(const Plan& plan, const Command* first, const broker::OnEvent& on_event,
                const Beneath* beneath);
  Status wait_until_ready(const Plan& plan, int error_fd, BrokerParts parts);
  Status send(protocol::Kind kind, std::uint32_t id, std::uint32_t value);
  bool ended_within(int wait_ms) const;
  void kill_until_ended();

  std::vector<std::string> environment_;
  std::string workdir_;
  Fd control_;
  pid_t init_ = -1;
  Fd init_pidfd_;
  Fd ruleset_;
  std::shared_ptr<const void> above_;  // the jar beneath which this one was born
  cgroup::Group group_;
  std::unique_ptr<PhaseClock> phases_;
  std::shared_ptr<Watchdog> watchdog_;
  std::unique_ptr<broker::Broker> broker_;
  std::unique_ptr<broker::Connects> connects_;
  bool pid_namespace_ = false;
  bool user_namespace_ = false;
  bool other_uid_ = false;  // than the caller's
  bool hung_up_ = false;    // init has; but a fork of the caller's may hide that
  std::uint32_t next_id_ = 1;
};

}  // namespace belljar::launcher
