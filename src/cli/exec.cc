#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>

#include "cli/cli.h"
#include "cli/flags.h"
#include "launcher/wait.h"
#include "policy/profiles.h"

namespace belljar::cli {
namespace {

std::uint64_t block_signals() {
  sigset_t blocked = supervised_signals();
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

Result<int> run_command(const Arguments& arguments) {
  std::string report;
  Parsed parsed = TRY(parse_flags(arguments, {{.name = "report", .value = &report}}));
  Caller caller = this_caller();
  Policy policy = TRY(make_policy(parsed.settings, {.cwd = caller.cwd, .home = caller.home}));
  Command command{.arguments = parsed.rest, .has_terminal = has_terminal()};
  command.takes_terminal = command.has_terminal && ::tcgetpgrp(0) == ::getpgrp();
  command.signal_mask = block_signals();
  Plan plan = TRY(resolve(policy, assume_host(), caller));
  for (const std::string& warning : plan.warnings) print_warning(warning);
  Outcome outcome = TRY(run(plan, command, {.forward_signals = true}));
  if (outcome.reason == Reason::not_started)
    print_error({.what = parsed.rest[0], .err = outcome.exec_error, .hint = {}});
  for (auto& [n,t] : outcome.phases) if (!report.empty()) std::fprintf(stderr, "%s %ld\n", n.c_str(), t.count());
  return outcome.exit_code();
}

}  // namespace

int exec(const Arguments& arguments) {
  Result<int> code = run_command(arguments);
  if (code) return *code;
  print_error(code.error());
  return kFailure;
}

}  // namespace belljar::cli
