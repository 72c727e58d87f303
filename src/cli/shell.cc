// shell: commands in a session's shell, or without any an ordinary shell in a jar, which
// has the terminal.
#include <boost/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "cli/configuration.h"
#include "cli/exec.h"
#include "cli/flags.h"
#include "cli/notices.h"
#include "cli/session_loop.h"
#include "session/report.h"

namespace belljar::cli {
namespace {

Result<int> run_commands(const Loaded& loaded, std::vector<std::string> commands, bool json) {
  const std::unique_ptr<TerminalSession> session = TRY(TerminalSession::start(loaded));
  session->set_streaming(!json);
  const ShellResult result = TRY(session->shell(std::move(commands)));
  if (json) write_all(1, pretty(session::to_json(result)));
  if (!json) print_notes(result, loaded.policy);
  return result.exit_code;
}

Result<int> run_shell(const Arguments& arguments) {
  std::string command;
  bool has_command = false;
  bool json = false;
  Parsed parsed = TRY(parse_flags(
      arguments, {{.name = "json", .seen = &json},
                  {.name = "command", .letter = 'c', .value = &command, .seen = &has_command}}));
  if (!parsed.rest.empty())
    return fail("unexpected argument " + parsed.rest[0], 0, "belljar shell [FLAGS] [-c COMMAND]");
  if (json && !has_command) return fail("--json needs a command", 0, "belljar shell --json -c ls");
  Run request{.loaded = TRY(load_here(parsed.settings)), .command = {}, .report = {}};
  for (const std::string& notice : notices(parsed.settings, request.loaded, this_caller()))
    print_warning(notice);
  if (has_command) return run_commands(request.loaded, {command}, json);
  request.command = {request.loaded.session.shell, "-i"};
  return run_loaded(request);
}

}  // namespace

int shell(const Arguments& arguments) { return report(run_shell(arguments)); }

}  // namespace belljar::cli
