#include "launcher/live.h"

#include <poll.h>

#include <algorithm>
#include <csignal>

#include "base/syscall.h"

namespace belljar::launcher {
namespace {

using protocol::Kind;
using std::chrono::milliseconds;

Command internal(const belljar::Command& command, const Stdio& stdio) {
  Command result{.arguments = command.arguments, .folder = command.folder, .stdio_fds = stdio.fds};
  for (const auto& [name, value] : command.environment)
    result.environment.push_back(name + "=" + value);
  return result;
}

Status check(const belljar::Command& command) {
  for (const auto& [name, value] : command.environment)
    if (name.empty() || name.find('=') != name.npos)
      return fail("\"" + name + "\" cannot be the name of a variable");
  return {};
}

// Times that a caller means as "never" must not overflow.
Live::Clock::time_point after(milliseconds time) {
  constexpr milliseconds kNever = std::chrono::years(10);
  return Live::Clock::now() + std::min(time, kNever);
}

Status accept_plan(const Plan&) { return {}; }

}  // namespace

Live::Live(Started started, bool one_command)
    : one_command_(one_command),
      can_empty_files_(can_empty_files(started.plan)),
      policy_(std::move(started.plan.policy)),
      kept_(std::move(started.plan.kept)),
      losses_(std::move(started.plan.losses)),
      leftovers_(std::move(started.plan.layout.leftovers)),
      jar_(std::move(started.jar)),
      watch_(policy_.limits) {}

Result<std::shared_ptr<Live>> Live::start(const Policy& policy, const Caller& caller, Host& host,
                                          const belljar::Command* only) {
  if (policy.mode == Mode::off)
    return fail("the policy's mode is off, and the library runs nothing without a sandbox");
  Stdio stdio;
  Command first;
  if (only != nullptr) {
    TRY(check(*only));
    stdio = TRY(open_stdio(*only));
    TRY(check_stdio(policy, stdio.fds));
    first = internal(*only, stdio);
  }
  Started started =
      TRY(launcher::start(policy, caller, host, only != nullptr ? &first : nullptr, accept_plan));
  // In a fork of the caller's this would end a jar that is still used outside.
  auto destroy = [](Live* live) {
    if (live->owner_ == ::getpid()) delete live;
  };
  std::shared_ptr<Live> live(new Live(std::move(started), only != nullptr), destroy);
  if (only != nullptr) live->add_task(1, stdio);
  return live;
}

Result<std::uint32_t> Live::spawn(const belljar::Command& command) {
  if (!alive()) return fail("the jar has ended");
  TRY(check(command));
  Stdio stdio = TRY(open_stdio(command));
  TRY(check_stdio(policy_, stdio.fds));
  if (can_empty_files_ && reads_a_file(stdio.fds))
    return fail("on this kernel a program in a jar that runs could empty the file that it reads", 0,
                "give it what the file holds as its input, or through a pipe");
  Command request = internal(command, stdio);
  request.leads = false;
  const std::uint32_t id = TRY(jar_.spawn(request));
  add_task(id, stdio);
  return id;
}

void Live::add_task(std::uint32_t id, Stdio& stdio) {
  std::optional<Clock::time_point> deadline;
  if (policy_.limits.timeout) deadline = after(*policy_.limits.timeout);
  tasks_.push_back({.id = id,
                    .began = Clock::now(),
                    .deadline = deadline,
                    .out = std::move(stdio.out),
                    .err = std::move(stdio.err),
                    .status = {}});
}

Live::Task* Live::find(std::uint32_t id) {
  auto at = std::ranges::find(tasks_, id, &Task::id);
  return at == tasks_.end() ? nullptr : &*at;
}

Status Live::signal(std::uint32_t id, int signal) {
  const Task* task = find(id);
  if (ended_ || task == nullptr || task->ended) return {};  // nothing is left to signal
  return jar_.signal(id, signal);
}

Result<std::optional<Outcome>> Live::wait(std::uint32_t id, std::optional<milliseconds> time) {
  std::optional<Clock::time_point> until;
  if (time) until = after(*time);
  for (;;) {
    const Task* task = find(id);
    if (task == nullptr) return fail("this process has been waited for");
    if (task->ended) return take(id);
    const bool time_is_over = until && Clock::now() >= *until;
    TRY(advance(until));
    if (time_is_over && !task->ended) return std::nullopt;
  }
}

Outcome Live::take(std::uint32_t id) {
  auto at = std::ranges::find(tasks_, id, &Task::id);
  Outcome outcome = std::move(at->outcome);
  tasks_.erase(at);
  return outcome;
}

void Live::forget(std::uint32_t id) {
  Task* task = find(id);
  if (task == nullptr) return;
  if (task->ended) return static_cast<void>(take(id));
  task->forgotten = true;
  task->out.keep_nothing_more();
  task->err.keep_nothing_more();
}

// Milliseconds until something must be looked at; -1: nothing must.
int Live::next_tick(std::optional<Clock::time_point> until) const {
  std::optional<Clock::time_point> next = until;
  auto sooner = [&](Clock::time_point time) { next = next ? std::min(*next, time) : time; };
  for (const Task& task : tasks_)
    if (task.deadline && !task.ended) sooner(*task.deadline);
  if (auto every = watch_.every(jar_)) sooner(Clock::now() + *every);
  if (!next) return -1;
  constexpr milliseconds kLongest = std::chrono::hours(1);  // poll counts in an int
  auto left = std::chrono::ceil<milliseconds>(*next - Clock::now());
  return static_cast<int>(std::clamp(left, milliseconds(0), kLongest).count());
}

// One turn: waits for news at most `until`, and sees to it.
Status Live::advance(std::optional<Clock::time_point> until) {
  std::vector<pollfd> fds = {{.fd = jar_.control_fd(), .events = POLLIN, .revents = 0},
                             {.fd = jar_.init_pidfd(), .events = POLLIN, .revents = 0}};
  for (const Task& task : tasks_)
    for (const Capture* capture : {&task.out, &task.err})
      if (capture->fd() >= 0) fds.push_back({.fd = capture->fd(), .events = POLLIN, .revents = 0});
  if (retry([&] { return ::poll(fds.data(), fds.size(), next_tick(until)); }) < 0)
    return fail("poll", errno);
  for (Task& task : tasks_) {
    task.out.read_some();
    task.err.read_some();
  }
  const bool was_the_last = jar_.has_ended();
  while (std::optional<Event> event = TRY(jar_.next_event())) {
    act_on(*event);
    if (ended_) return {};
  }
  if (was_the_last) {
    end_for(std::nullopt);
    return {};
  }
  for (Task& task : tasks_) {
    if (!task.ended && task.deadline && Clock::now() >= *task.deadline) TRY(remind(task));
    if (ended_) return {};
  }
  if (std::optional<Reason> passed = watch_.look(jar_)) end_for(passed);
  std::erase_if(tasks_, [](const Task& task) { return task.ended && task.forgotten; });
  return {};
}

void Live::act_on(const Event& event) {
  Task* task = find(event.id);
  if (task == nullptr || task->ended) return;
  if (event.kind == Kind::exited) {
    task->status = static_cast<int>(event.value);
  } else if (event.kind == Kind::failed) {
    task->outcome.reason = Reason::not_started;
    task->outcome.exec_error = static_cast<int>(event.value & ~protocol::kNoFolder);
  } else {
    return;
  }
  if (one_command_)
    end_for(std::nullopt);
  else
    finish(*task, nullptr);
}

// A command at its timeout is asked to end, then made to; one that does neither takes
// its jar along.
Status Live::remind(Task& task) {
  task.deadline = Clock::now() + kGrace;
  task.outcome.reason = Reason::timeout;
  const int times = task.reminders++;
  if (times == 0) {
    TRY(jar_.signal(task.id, SIGTERM));
    return jar_.signal(task.id, SIGCONT);  // a stopped process would not see it
  }
  if (times == 1 && !one_command_) return jar_.signal(task.id, SIGKILL);
  end_for(std::nullopt);
  return {};
}

void Live::finish(Task& task, const cgroup::Group* group) {
  task.out.read_rest();
  task.err.read_rest();
  Outcome& outcome = task.outcome;
  outcome.out = std::move(task.out.text);
  outcome.err = std::move(task.err.text);
  outcome.out_dropped = task.out.dropped;
  outcome.err_dropped = task.err.dropped;
  outcome.wall = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - task.began);
  outcome.kept = kept_;
  outcome.losses = losses_;
  judge(outcome, task.status, group);
  add_felt_limits(outcome, policy_.limits);
  task.out = {};
  task.err = {};
  task.ended = true;
}

void Live::end() {
  if (owner_ == ::getpid()) end_for(std::nullopt);
}

void Live::end_for(std::optional<Reason> reason) {
  if (ended_) return;
  ended_ = true;
  const rusage used = jar_.end();
  for (Task& task : tasks_) {
    if (task.ended) continue;
    if (reason) task.outcome.reason = *reason;
    task.outcome.peak_memory_kb = watch_.peak_memory_kb();
    if (one_command_) add_usage(task.outcome, used, jar_);
    if (one_command_) add_network(task.outcome, jar_);
    finish(task, &jar_.group());
  }
  jar_.release_group();
}

}  // namespace belljar::launcher
