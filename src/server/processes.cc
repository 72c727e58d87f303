#include "server/processes.h"

#include <array>
#include <csignal>

#include "base/json_field.h"
#include "server/limits.h"

namespace belljar::server {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxWords = 1000;
// What all programs of one owner may have been sent and have not read, in bytes.
constexpr std::size_t kMaxUnread = std::size_t{64} << 20;

constexpr std::pair<std::string_view, int> kSignals[] = {
    {"INT", SIGINT},   {"TERM", SIGTERM}, {"KILL", SIGKILL}, {"HUP", SIGHUP},  {"QUIT", SIGQUIT},
    {"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"STOP", SIGSTOP}, {"CONT", SIGCONT}};

bool flag_of(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_bool() && value->get_bool();
}

ToolAnswer invalid(std::string what) { return tool_error("invalid_arguments", std::move(what)); }

}  // namespace

std::expected<ProgramCall, std::string> program_call(const json::object& arguments) {
  ProgramCall call;
  const json::value* words = arguments.if_contains("arguments");
  if (words != nullptr && words->is_array()) {
    if (words->get_array().size() > kMaxWords)
      return std::unexpected("arguments has too many words");
    for (const json::value& word : words->get_array()) {
      if (!word.is_string()) return std::unexpected("arguments must hold strings");
      call.arguments.emplace_back(word.get_string());
    }
  }
  if (call.arguments.empty() || call.arguments[0].empty())
    return std::unexpected("arguments must have at least one word");
  for (const std::string& word : call.arguments)
    if (word.find('\0') != word.npos) return std::unexpected("a word holds a NUL byte");
  call.folder = text_of(arguments, "folder");
  if (call.folder.find('\0') != call.folder.npos)
    return std::unexpected("the folder holds a NUL byte");
  call.terminal = flag_of(arguments, "terminal");
  const json::value* variables = arguments.if_contains("environment");
  if (variables != nullptr && variables->is_object())
    for (const auto& variable : variables->get_object()) {
      if (!variable.value().is_string()) return std::unexpected("environment must hold strings");
      const std::string_view name = variable.key();
      if (name.empty() || name.find('=') != name.npos || name.find('\0') != name.npos ||
          std::string_view(variable.value().get_string()).find('\0') != name.npos)
        return std::unexpected("environment holds what is no name or value of a variable");
      call.environment.emplace_back(variable.key(), variable.value().get_string());
    }
  return call;
}

namespace {

ToolAnswer answer_of(const std::string& id, const ProgramState& state) {
  ToolAnswer answer;
  answer.text = state.out;
  if (!state.err.empty())
    answer.text += (answer.text.empty() ? "" : "\n") + ("stderr:\n" + state.err);
  if (!answer.text.empty() && !answer.text.ends_with('\n')) answer.text += "\n";
  answer.text += state.running ? "process " + id + " is running"
                               : "process " + id + " ended with exit code " +
                                     std::to_string(state.exit_code.value_or(0));
  json::object& object = answer.structured;
  object["process"] = id;
  object["running"] = state.running;
  object["exit_code"] = nullptr;
  if (state.exit_code) object["exit_code"] = *state.exit_code;
  object["stdout"] = state.out;
  object["stderr"] = state.err;
  object["stdout_cut_bytes"] = state.out_cut;
  object["stderr_cut_bytes"] = state.err_cut;
  return answer;
}

}  // namespace

void Processes::forget(const std::string& session) { programs_.erase(session); }

Async<ToolAnswer> Processes::run(ToolCall& call) {
  if (call.tool == "process_start") co_return co_await start(call);
  const std::string id = text_of(call.arguments, "process");
  const auto mine = programs_.find(call.session);
  if (mine == programs_.end() || !mine->second.contains(id))
    co_return tool_error("not_found", "there is no process " + id + " in this session");
  const Program program = mine->second.at(id);
  if (call.tool == "process_poll") co_return co_await poll(call, id, program);
  if (call.tool == "process_write") co_return write(call, id, *program);
  co_return signal(call, id, *program);
}

Async<ToolAnswer> Processes::start(ToolCall& call) {
  auto asked = program_call(call.arguments);
  if (!asked) co_return invalid(asked.error());
  const std::string session = call.session;
  if (std::optional<ToolAnswer> full = refusal(session)) co_return *std::move(full);
  ++starting_[session];
  const Result<Program> started = co_await engine_.spawn(session, std::move(*asked));
  if (--starting_[session] == 0) starting_.erase(session);
  if (!started) co_return failure(started.error());
  if (engine_.number(session) != call.number)
    co_return tool_error("failed", "the session was closed");
  const std::string id = "p" + std::to_string(++last_);
  programs_[session][id] = *started;
  co_return answer_of(id, (*started)->read());
}

// What it has written since the last time; where that is nothing, something is waited for, or
// its end, as long as asked. One poll waits; others of the same process do not.
Async<ToolAnswer> Processes::poll(ToolCall& call, std::string id, Program program) {
  std::int64_t wait = 0;
  if (const json::value* given = call.arguments.if_contains("wait_ms")) {
    boost::system::error_code error;
    wait = given->is_number() ? given->to_number<std::int64_t>(error) : -1;
    if (error || wait < 0) co_return invalid("wait_ms must be a whole number");
  }
  wait = std::min(wait, kMaxPollMs);
  if (wait > 0 && awaited_.insert(program.get()).second) {
    co_await program->wait_for_news(Clock::now() + std::chrono::milliseconds(wait));
    awaited_.erase(program.get());
  }
  co_return answer_of(id, program->read());
}

std::optional<ToolAnswer> Processes::refusal(const std::string& session) {
  const auto is_full = [&] {
    const auto starting = starting_.find(session);
    const std::size_t soon = starting != starting_.end() ? starting->second : 0;
    return programs_[session].size() + soon >= kMaxPrograms ||
           sums(session).programs >= kMaxProgramsOfOne;
  };
  if (is_full()) forget_ended(engine_.owner_of(session));
  if (!is_full()) return std::nullopt;
  return tool_error("limit", "a session has at most " + std::to_string(kMaxPrograms) +
                                 " processes, and all of yours together " +
                                 std::to_string(kMaxProgramsOfOne));
}

// They can be asked about until room is needed.
void Processes::forget_ended(const std::string& owner) {
  for (auto& [id, programs] : programs_)
    if (engine_.owner_of(id) == owner)
      std::erase_if(programs, [](const auto& entry) { return !entry.second->running(); });
}

Processes::Sums Processes::sums(const std::string& session) const {
  const std::string owner = engine_.owner_of(session);
  Sums sums;
  for (const auto& [id, programs] : programs_) {
    if (engine_.owner_of(id) != owner) continue;
    sums.programs += programs.size();
    for (const auto& [name, program] : programs) sums.unread += program->unread();
  }
  for (const auto& [id, count] : starting_)
    if (engine_.owner_of(id) == owner) sums.programs += count;
  return sums;
}

ToolAnswer Processes::write(const ToolCall& call, const std::string& id,
                            session::Program& program) {
  const std::string text = text_of(call.arguments, "text");
  const bool end = flag_of(call.arguments, "end");
  if (text.empty() && !end) return invalid("text, or end, is needed");
  if (sums(call.session).unread + text.size() > kMaxUnread)
    return tool_error("limit", "the processes have not read 64 MiB of what they were sent");
  Status done;
  if (!text.empty()) done = program.write(text);
  if (done && end) done = program.close_input();
  if (!done) return tool_error("failed", done.error().message());
  return answer_of(id, program.read());
}

ToolAnswer Processes::signal(const ToolCall& call, const std::string& id,
                             session::Program& program) {
  std::string name = text_of(call.arguments, "signal");
  if (name.starts_with("SIG")) name.erase(0, 3);
  if (name.empty()) name = "TERM";
  for (const auto& [known, number] : kSignals) {
    if (name != known) continue;
    if (!program.running()) return tool_error("not_found", "it has ended");
    program.signal(number);
    return answer_of(id, program.read());
  }
  return invalid("signal must be one of INT, TERM, KILL, HUP, QUIT, USR1, USR2, STOP, CONT");
}

}  // namespace belljar::server
