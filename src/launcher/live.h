// Live: a jar with the commands that run in it, as the library offers it. No thread
// serves it: whoever waits for one of its commands reads the output of all of them and
// looks after the limits.
#pragma once

#include <unistd.h>

#include <list>

#include "launcher/start.h"
#include "launcher/stdio.h"
#include "launcher/verdict.h"

namespace belljar::launcher {

class Live {
 public:
  using Clock = std::chrono::steady_clock;

  // With `only`, the jar is that command's: it ends with it.
  static Result<std::shared_ptr<Live>> start(const Policy& policy, const Caller& caller, Host& host,
                                             const belljar::Command* only = nullptr);
  Live(const Live&) = delete;
  Live& operator=(const Live&) = delete;
  ~Live() { end(); }

  Result<std::uint32_t> spawn(const belljar::Command& command);
  Status signal(std::uint32_t id, int signal);
  // nullopt: not ended in that time. An outcome can be had once.
  Result<std::optional<Outcome>> wait(std::uint32_t id,
                                      std::optional<std::chrono::milliseconds> time = {});
  // Nobody will wait for it.
  void forget(std::uint32_t id);

  bool alive() const { return !ended_ && !jar_.has_ended(); }
  void end();

  const std::vector<Kept>& kept() const { return kept_; }
  const std::vector<Loss>& losses() const { return losses_; }

 private:
  struct Task {
    std::uint32_t id;
    Clock::time_point began;
    std::optional<Clock::time_point> deadline;
    int reminders = 0;  // how often it was told to end
    Capture out, err;
    std::optional<int> status;
    Outcome outcome{};
    bool ended = false;
    bool forgotten = false;
  };

  Live(Started started, bool one_command);
  void add_task(std::uint32_t id, Stdio& stdio);
  Task* find(std::uint32_t id);
  Outcome take(std::uint32_t id);
  int next_tick(std::optional<Clock::time_point> until) const;
  Status advance(std::optional<Clock::time_point> until);
  void act_on(const Event& event);
  Status remind(Task& task);
  void finish(Task& task, const cgroup::Group* group);
  void end_for(std::optional<Reason> reason);

  const pid_t owner_ = ::getpid();
  const bool one_command_;
  const bool can_empty_files_;
  Policy policy_;
  std::vector<Kept> kept_;
  std::vector<Loss> losses_;
  Leftovers leftovers_;
  Jar jar_;
  LimitWatch watch_;
  std::list<Task> tasks_;
  bool ended_ = false;
};

}  // namespace belljar::launcher
