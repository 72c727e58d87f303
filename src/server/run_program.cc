#include "server/run_program.h"

#include <algorithm>
#include <cerrno>

#include "base/utf8.h"
#include "server/processes.h"

namespace belljar::server {
namespace {

namespace json = boost::json;

std::string as_text(const std::string& bytes) {
  return is_utf8(bytes) ? bytes : repair_utf8(bytes);
}

json::object to_json(const session::ProgramEnd& end) {
  const bool good = !end.timed_out && end.state.exit_code == 0;
  json::object object;
  object["status"] = end.timed_out ? "timeout" : good ? "success" : "error";
  object["exit_code"] = nullptr;
  if (end.state.exit_code) object["exit_code"] = *end.state.exit_code;
  object["timed_out"] = end.timed_out;
  object["interrupted"] = end.interrupted;
  object["stdout"] = as_text(end.state.out);
  object["stderr"] = as_text(end.state.err);
  object["stdout_cut_bytes"] = end.state.out_cut;
  object["stderr_cut_bytes"] = end.state.err_cut;
  object["execution_time_ms"] = end.time.count();
  object["notes"] = json::value_from(end.notes);
  return object;
}

// Of what was asked for, and no failure of ours.
bool is_of_the_program(int err) {
  constexpr int kOfTheProgram[] = {ENOENT, EACCES, ENOTDIR,      ENOEXEC, EISDIR,
                                   E2BIG,  ELOOP,  ENAMETOOLONG, EPERM,   EINVAL};
  return std::ranges::find(kOfTheProgram, err) != std::end(kOfTheProgram);
}

// As a shell says it.
ToolAnswer not_started(const Error& error) {
  session::ProgramEnd end;
  end.state.exit_code = error.err == ENOENT ? 127 : 126;
  end.state.err = error.message() + "\n";
  ToolAnswer answer = tool_error("exit_code", error.message());
  answer.whole = to_json(end);
  return answer;
}

}  // namespace

Async<ToolAnswer> run_program(session::Engine& engine, ToolCall& call,
                              std::optional<std::chrono::milliseconds> time) {
  std::expected<ProgramCall, std::string> asked = program_call(call.arguments);
  if (!asked) co_return tool_error("invalid_arguments", asked.error());
  asked->on_output = call.on_output;
  const std::string id = call.session;
  const Result<session::ProgramEnd> end = co_await engine.run(id, std::move(*asked), time);
  const bool is_callers = !end && is_of_the_program(end.error().err);
  if (is_callers) co_return not_started(end.error());
  if (!end) co_return failure(end.error());
  ToolAnswer answer;
  answer.whole = to_json(*end);
  answer.text = end->state.out;
  answer.is_error = end->timed_out || end->state.exit_code != 0;
  if (answer.is_error) answer.error_type = end->timed_out ? "timeout" : "exit_code";
  co_return answer;
}

}  // namespace belljar::server
