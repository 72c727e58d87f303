#include "cli/exec.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>

#include "cli/configuration.h"
#include "cli/flags.h"
#include "cli/not_started.h"
#include "cli/notices.h"
#include "cli/report.h"
#include "plan/bound.h"
#include "plan/workdir.h"
#include "policy/profiles.h"

namespace belljar::cli {
namespace {

std::uint64_t block_signals() {
  sigset_t blocked = launcher::supervised_signals();
  ::sigaddset(&blocked, SIGTTOU);  // or taking the terminal back would stop us
  sigset_t before;
  ::sigprocmask(SIG_BLOCK, &blocked, &before);
  std::uint64_t mask = 0;
  std::memcpy(&mask, &before, sizeof mask);  // the kernel's own form is the first 64 bits
  return mask;
}

// The terminal is shared only when the guest has it whole, and only by a job that has it:
// one that was started in the background must not come to read what the person types.
bool has_terminal() {
  for (int fd : {0, 1, 2})
    if (::isatty(fd) == 0) return false;
  return ::tcgetpgrp(0) == ::getpgrp();
}

void raise_cpu_limit(Policy& policy) {
  Limits& limits = policy.limits;
  if (!limits.timeout || !limits.cpu_secs) return;
  const auto seconds =
      static_cast<std::uint64_t>(std::chrono::ceil<std::chrono::seconds>(*limits.timeout).count());
  if (seconds <= *limits.cpu_secs) return;
  print_warning("max_cpu_secs raised to the timeout, " + std::to_string(seconds) + " s");
  limits.cpu_secs = seconds;
}

[[noreturn]] void run_without_sandbox(const Arguments& command) {
  print_warning("no sandbox: this command has all your rights");
  std::vector<char*> arguments;
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  print_error({.what = command[0], .err = errno, .hint = {}});
  std::exit(errno == ENOENT ? 127 : 126);
}

// Said before the guest starts, so that it is not lost in its output.
Status announce(const Plan& plan) {
  for (const std::string& warning : plan.warnings) print_warning(warning);
  for (const Loss& loss : plan.losses) {
    const std::string what = std::string(name(loss.promise)) + ": " + loss.what;
    if (loss.broken)
      print_warning("not kept here: " + what);
    else
      print_detail("less depth here: " + what);
  }
  return {};
}

void print_phases(const Outcome& outcome) {
  if (output().verbosity != Verbosity::verbose) return;
  for (const auto& [phase, time] : outcome.phases)
    print_detail("launch: " + phase + " " + std::to_string(time.count()) + " µs");
}

void print_event(const NetworkEvent& event) { print_detail("network: " + in_words(event)); }

}  // namespace

Status check_workdir(const Loaded& loaded, const Caller& caller) {
  return belljar::check_workdir(loaded.settings, loaded.policy, caller);
}

Result<int> run_loaded(const Run& request) {
  if (request.command.empty()) return fail("no command to run", 0, "belljar exec -- COMMAND");
  const Caller caller = this_caller();
  Policy policy = request.loaded.policy;
  TRY(check_workdir(request.loaded, caller));
  if (policy.mode == Mode::off) {
    if (policy.limits.timeout || !request.report.empty())
      return fail("timeout and report need the sandbox", 0, "leave out --sandbox=off");
    run_without_sandbox(request.command);
  }
  TRY(launcher::check_stdio(policy, {0, 1, 2}));
  std::optional<ReportFile> report_file;
  if (!request.report.empty())
    report_file = TRY(ReportFile::prepare(request.report, policy.files, caller));
  raise_cpu_limit(policy);
  launcher::Command command{.arguments = request.command, .has_terminal = has_terminal()};
  command.signal_mask = block_signals();
  GuestsView view;
  auto about_to_run = [&](const Plan& plan) -> Status {
    if (request.loaded.bound) TRY(check_bound(plan, *request.loaded.bound));
    view = view_of(plan);
    return announce(plan);
  };
  const launcher::Supervision supervision{.forward_signals = true, .on_network = print_event};
  Outcome outcome = TRY(launcher::run(policy, caller, command, supervision, about_to_run));
  print_phases(outcome);
  if (outcome.reason == Reason::not_started)
    print_error(not_started(request.command[0], outcome.exec_error, view));
  if (std::string words = last_words(policy, outcome); !words.empty())
    print_error({.what = words, .err = 0, .hint = {}});
  for (const std::string& line : denials(outcome.network)) print_error({.what = line});
  if (report_file)
    // The guest has run: how it ended must not be lost for this.
    if (Status written = report_file->write(policy, outcome); !written)
      print_error(written.error());
  return outcome.exit_code();
}

namespace {

Result<int> run_exec(const Arguments& arguments) {
  Run request;
  Parsed parsed = TRY(parse_flags(arguments, {{.name = "report", .value = &request.report}}));
  request.loaded = TRY(load_here(parsed.settings));
  request.command = std::move(parsed.rest);
  for (const std::string& notice : notices(parsed.settings, request.loaded, this_caller()))
    print_warning(notice);
  return run_loaded(request);
}

}  // namespace

int exec(const Arguments& arguments) { return report(run_exec(arguments)); }

}  // namespace belljar::cli
