#include "cli/exec.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "cli/configuration.h"
#include "cli/flags.h"
#include "cli/report.h"
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

// The terminal is shared only when the guest has it whole.
bool has_terminal() {
  for (int fd : {0, 1, 2})
    if (::isatty(fd) == 0) return false;
  return ::tcgetpgrp(0) >= 0;  // it is this session's own
}

// A whole home, or more, is rarely what a person means to hand over.
Status check_workdir(const Settings& settings, const Policy& policy, const Caller& caller) {
  if (settings.workdir || policy.profile == "open") return {};
  if (caller.cwd.empty())
    return fail("the current folder does not exist any more", 0, "-C DIR names one");
  // By their real names: a symlink to the home is the home.
  std::error_code ignored;
  const std::string home = std::filesystem::weakly_canonical(caller.home, ignored);
  const std::string folder = std::filesystem::weakly_canonical(caller.cwd, ignored);
  if (is_below(home, folder) || folder == "/")
    return fail("the current folder " + caller.cwd + " holds your home, and would be writable", 0,
                "cd into a project folder, or name it: -C " + caller.cwd);
  for (const char* system :
       {"/usr", "/etc", "/bin", "/sbin", "/lib", "/boot", "/dev", "/proc", "/sys"})
    if (is_below(folder, system))
      return fail("the current folder " + caller.cwd + " is the system's, and would be writable", 0,
                  "cd into a project folder, or name it: -C " + caller.cwd);
  return {};
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

// The project was judged by where its paths led when its file was read. A guest that runs
// meanwhile may have changed that, so what counts is what was opened.
Status check_bound(const Plan& plan, const Reach& bound) {
  for (const Place& place : plan.layout.places) {
    const bool grants = place.access == Access::read || place.access == Access::write;
    const bool callers_home = place.from == "home" && plan.policy.files.home_dir.empty();
    // Not the project's to name; a credential's name was judged.
    const bool others = place.from == "system" || place.from == "toolchain" ||
                        place.from == "private" || place.from == "credential" || callers_home;
    if (!grants || place.pin || others || bound.allows(place.path, place.access)) continue;
    return fail("belljar.toml is not trusted, and its " + place.from + " led to " + place.path +
                    " when it was opened",
                0, "something has changed a symlink meanwhile");
  }
  return {};
}

void print_phases(const Outcome& outcome) {
  if (output().verbosity != Verbosity::verbose) return;
  for (const auto& [phase, time] : outcome.phases)
    print_detail("launch: " + phase + " " + std::to_string(time.count()) + " µs");
}

// Why a command is not there: perhaps it is, but outside.
Error not_started(const std::string& command, int error, const Caller& caller) {
  Error result{.what = command, .err = error, .hint = {}};
  if (error != ENOENT) return result;
  std::string_view path;
  for (const std::string& variable : caller.environment)
    if (variable.starts_with("PATH=")) path = std::string_view(variable).substr(5);
  while (command.find('/') == command.npos && !path.empty()) {
    std::string folder(path.substr(0, path.find(':')));
    path.remove_prefix(std::min(folder.size() + 1, path.size()));
    if (::access((folder + "/" + command).c_str(), X_OK) == 0)
      result.hint = folder + "/" + command +
                    " exists, but the policy does not show it: --extra-read=" + folder;
  }
  if (result.hint.empty()) result.what += ": command not found";
  if (result.hint.empty()) result.err = 0;
  return result;
}

}  // namespace

Result<Policy> policy_for(const Settings& given, const Caller& caller) {
  Settings settings = given;
  const char* mode = std::getenv("BELLJAR_SANDBOX");
  if (mode != nullptr && !settings.mode && !settings.denies_or_allows()) {
    Status set_mode = set(settings, *find_key("mode"), mode, {});
    if (!set_mode) return fail("BELLJAR_SANDBOX: " + set_mode.error().what);
  }
  Policy policy = TRY(make_policy(settings, {.cwd = caller.cwd, .home = caller.home}));
  if (policy.mode != Mode::off) TRY(check_workdir(settings, policy, caller));
  return policy;
}

Result<int> run_settings(const Run& request) {
  if (request.command.empty()) return fail("no command to run", 0, "belljar exec -- COMMAND");
  const Caller caller = this_caller();
  Policy policy = TRY(policy_for(request.settings, caller));
  if (!request.profile_name.empty()) policy.profile = request.profile_name;
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
  command.takes_terminal = command.has_terminal && ::tcgetpgrp(0) == ::getpgrp();
  command.signal_mask = block_signals();
  auto about_to_run = [&](const Plan& plan) -> Status {
    if (request.bound) TRY(check_bound(plan, *request.bound));
    return announce(plan);
  };
  Outcome outcome =
      TRY(launcher::run(policy, caller, command, {.forward_signals = true}, about_to_run));
  print_phases(outcome);
  if (outcome.reason == Reason::not_started)
    print_error(not_started(request.command[0], outcome.exec_error, caller));
  if (std::string words = last_words(policy, outcome); !words.empty())
    print_error({.what = words, .err = 0, .hint = {}});
  if (report_file) TRY(report_file->write(policy, outcome));
  return outcome.exit_code();
}

int exec(const Arguments& arguments) {
  Run request;
  Result<Parsed> parsed = parse_flags(arguments, {{.name = "report", .value = &request.report}});
  if (!parsed) return report(std::unexpected(parsed.error()));
  Result<Loaded> loaded = load_here(parsed->settings);
  if (!loaded) return report(std::unexpected(loaded.error()));
  request.settings = std::move(loaded->settings);
  request.profile_name = loaded->policy.profile;
  request.bound = std::move(loaded->bound);
  request.command = std::move(parsed->rest);
  return report(run_settings(request));
}

}  // namespace belljar::cli
