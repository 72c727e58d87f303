#include "cli/cli.h"

#include <cstdio>

#include "cli/global_flags.h"
#include "cli/help.h"

namespace belljar::cli {

Caller this_caller() { return this_process(); }

int report(const Result<int>& code) {
  if (code) return *code;
  print_error(code.error());
  return kFailure;
}

namespace {

Result<int> dispatch(Arguments arguments) {
  GlobalFlags flags;
  TRY(take_global_flags(arguments, nullptr, flags));
  const Subcommand* command = arguments.empty() ? nullptr : find_subcommand(arguments[0]);
  if (command != nullptr) {
    arguments.erase(arguments.begin());
    TRY(take_global_flags(arguments, command, flags));
  }
  set_output(flags.output);
  if (flags.version) {
    std::fputs("belljar " BELLJAR_VERSION "\n", stdout);
    return 0;
  }
  if (flags.help) return print_help(command);
  if (command != nullptr) return command->run(arguments);
  if (arguments.empty()) return fail("no command", 0, "belljar --help lists them");
  if (arguments[0].starts_with('-'))
    return fail("unknown flag " + arguments[0] + " before the command", 0, "belljar --help");
  return unknown_command(arguments[0]);
}

}  // namespace

int main(Arguments arguments) { return report(dispatch(std::move(arguments))); }

}  // namespace belljar::cli
