// run: a task of belljar.toml, after the tasks it depends on, each in a jar with a
// policy of its own. A command that fails ends the run.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/syscall.h"
#include "cli/configuration.h"
#include "cli/exec.h"
#include "cli/flags.h"
#include "policy/tasks.h"

namespace belljar::cli {
namespace {

constexpr const char* kUsage = "belljar run [FLAGS] TASK [-- ARGUMENTS…]";

struct Request {
  Settings flags;
  std::string report;
  std::string task;
  Arguments arguments;  // for the last command of the task
};

Result<Request> parse(const Arguments& arguments) {
  Request request;
  Parsed parsed = TRY(parse_flags(arguments, {{.name = "report", .value = &request.report}}));
  if (parsed.rest.empty()) return fail("no task to run", 0, kUsage);
  if (parsed.rest.size() > 1 && parsed.rest[1] != "--")
    return fail("unexpected argument " + parsed.rest[1], 0, kUsage);
  request.flags = std::move(parsed.settings);
  request.task = parsed.rest[0];
  if (parsed.rest.size() > 2) request.arguments.assign(parsed.rest.begin() + 2, parsed.rest.end());
  return request;
}

// "$@" and not their text: no argument is read by the shell.
Arguments shell_command(const std::string& command, const Arguments& more) {
  if (more.empty()) return {"/bin/sh", "-c", command};
  Arguments all = {"/bin/sh", "-c", command + " \"$@\"", "sh"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

// Running a command blocks the signals that are passed on to it. The next one must
// not inherit that.
class SignalMask {
 public:
  SignalMask() { ::sigprocmask(SIG_SETMASK, nullptr, &before_); }
  ~SignalMask() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  SignalMask(const SignalMask&) = delete;
  SignalMask& operator=(const SignalMask&) = delete;

 private:
  sigset_t before_{};
};

// Without a sandbox belljar becomes the command, so each needs a process.
Result<int> run_outside(const Run& run) {
  const pid_t child = ::fork();
  if (child < 0) return fail("fork", errno);
  if (child == 0) {
    if (::chdir(run.settings.workdir->c_str()) < 0)
      ::_exit(report(fail("enter " + *run.settings.workdir, errno)));
    ::_exit(report(run_settings(run)));
  }
  int status = 0;
  if (retry([&] { return ::waitpid(child, &status, 0); }) < 0) return fail("waitpid", errno);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

Result<int> run_one(const Run& run) {
  if (run.settings.mode == "off") return run_outside(run);
  const SignalMask unchanged_afterwards;
  return run_settings(run);
}

Result<int> run_task(const Task& task, const Run& prepared, const Arguments& more) {
  for (const std::string& command : task.run) {
    Run run = prepared;
    run.command = shell_command(command, &command == &task.run.back() ? more : Arguments{});
    if (int code = TRY(run_one(run)); code != 0) return code;
  }
  return 0;
}

Result<int> run_tasks(const Arguments& arguments) {
  const Request request = TRY(parse(arguments));
  const ConfigPlaces places = config_places(this_caller());
  const std::string file = TRY(project_file("", places));
  const ConfigFiles files = TRY(read_config_files(places, file));
  const Config& config = files.project->config;

  const std::string_view wanted[] = {request.task};
  const auto order = TRY(task_order(config, wanted));
  // All policies before the first command: a refusal must not come half way.
  std::vector<Run> prepared;
  for (const auto* entry : order) {
    Loaded loaded = TRY(load(files, places, request.flags, &entry->second));
    if (!loaded.settings.workdir) loaded.settings.workdir = config.folder;
    prepared.push_back({.settings = std::move(loaded.settings),
                        .command = {},
                        .report = request.report,
                        .profile_name = loaded.policy.profile,
                        .bound = std::move(loaded.bound)});
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    const bool last = i + 1 == order.size();
    const Arguments& more = last ? request.arguments : Arguments{};
    if (int code = TRY(run_task(order[i]->second, prepared[i], more)); code != 0) return code;
  }
  return 0;
}

}  // namespace

int run(const Arguments& arguments) { return report(run_tasks(arguments)); }

}  // namespace belljar::cli
