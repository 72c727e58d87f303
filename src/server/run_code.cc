// The tools that run code in a session, and those about sessions themselves.
#include <boost/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <ranges>

#include "base/commas.h"
#include "server/dispatch.h"
#include "server/limits.h"
#include "session/report.h"

namespace belljar::server {
namespace {

namespace json = boost::json;
using std::chrono::milliseconds;

// Of arguments that fit the tool's schema.
std::optional<std::int64_t> number_in(const json::object& arguments, std::string_view name) {
  const json::value* value = arguments.if_contains(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_double()) return std::llround(value->get_double());
  // What is unsigned is more than fits; there is a largest of everything.
  return value->is_uint64() ? std::numeric_limits<std::int64_t>::max() : value->as_int64();
}

std::vector<std::string> texts_in(const json::object& arguments, std::string_view name) {
  std::vector<std::string> texts;
  if (const json::value* value = arguments.if_contains(name))
    for (const json::value& one : value->as_array()) texts.emplace_back(one.as_string());
  return texts;
}

std::optional<std::string> text_in(const json::object& arguments, std::string_view name) {
  const json::value* value = arguments.if_contains(name);
  if (value == nullptr || !value->is_string()) return std::nullopt;
  return std::string(value->get_string());
}

bool flag_in(const json::object& arguments, std::string_view name) {
  const json::value* value = arguments.if_contains(name);
  return value != nullptr && value->is_bool() && value->get_bool();
}

PythonCall python_call(const json::object& arguments) {
  PythonCall call;
  call.code = text_in(arguments, "code").value_or("");
  if (const auto timeout = number_in(arguments, "timeout_ms"))
    call.timeout = milliseconds(*timeout);
  call.outputs = texts_in(arguments, "outputs");
  call.output_file = text_in(arguments, "output_file");
  return call;
}

ShellCall shell_call(const json::object& arguments) {
  ShellCall call;
  call.commands = texts_in(arguments, "commands");
  if (const auto timeout = number_in(arguments, "timeout_ms"))
    call.timeout = milliseconds(*timeout);
  if (const auto length = number_in(arguments, "max_output_length"))
    call.max_output = static_cast<std::size_t>(*length);
  call.outputs = texts_in(arguments, "outputs");
  call.output_file = text_in(arguments, "output_file");
  call.one_shot = flag_in(arguments, "one_shot");
  return call;
}

void add_part(std::string& text, std::string_view title, std::string_view part) {
  if (part.empty()) return;
  if (!text.empty() && !text.ends_with('\n')) text += "\n";
  if (!title.empty()) text.append(title).append("\n");
  text += part;
}

void add_notes(std::string& text, const CallReport& report) {
  for (const std::string& note : report.notes) add_part(text, "", "note: " + note + "\n");
  for (const std::string& limit : report.limits_hit) add_part(text, "", "limit: " + limit + "\n");
  if (report.out_cut > 0)
    add_part(text, "", "note: " + std::to_string(report.out_cut) + " bytes of stdout left out\n");
  if (report.err_cut > 0)
    add_part(text, "", "note: " + std::to_string(report.err_cut) + " bytes of stderr left out\n");
  const auto names = report.files | std::views::transform(&SessionFile::name);
  if (!names.empty()) add_part(text, "", "files: " + with_commas(names) + "\n");
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

// The whole answer less what is sent in another form: images, and the bytes of files.
json::object structured(const json::object& whole) {
  json::object object;
  for (const auto& [name, value] : whole)
    if (!is_one_of(name, {"images", "video_frames", "displays", "result_data", "files"}))
      object[name] = value;
  json::array& files = object["files"].emplace_array();
  for (const json::value& file : whole.at("files").as_array()) {
    json::object about;
    for (const auto& [name, value] : file.as_object())
      if (!is_one_of(name, {"text", "base64"})) about[name] = value;
    files.push_back(std::move(about));
  }
  return object;
}

ToolAnswer answer_of(const CallReport& report, const json::object& whole) {
  ToolAnswer answer;
  answer.structured = structured(whole);
  for (const SessionFile& file : report.files)
    answer.files.push_back({.name = file.name, .mime = file.mime, .size = file.size});
  answer.is_error = report.status != CallStatus::success;
  if (report.status == CallStatus::timeout) answer.error_type = "timeout";
  return answer;
}

ToolAnswer answer_of(const PythonResult& result, const json::object& whole) {
  ToolAnswer answer = answer_of(static_cast<const CallReport&>(result), whole);
  if (result.status == CallStatus::error)
    answer.error_type = result.limits_hit.empty() ? "exception" : "limit";
  std::string& text = answer.text;
  add_part(text, "", result.out);
  add_part(text, "stderr:", result.err);
  if (result.result) add_part(text, "", *result.result + "\n");
  if (result.exception) add_part(text, "", result.exception->traceback);
  if (result.status == CallStatus::timeout) add_part(text, "", "its time was over\n");
  add_notes(text, result);
  if (text.empty()) text = "(no output)";
  for (const std::string& image : result.images)
    answer.images.push_back({.mime = "image/png", .base64 = image});
  return answer;
}

ToolAnswer answer_of(const ShellResult& result, const json::object& whole) {
  ToolAnswer answer = answer_of(static_cast<const CallReport&>(result), whole);
  if (result.status == CallStatus::error)
    answer.error_type = result.limits_hit.empty() ? "exit_code" : "limit";
  std::string& text = answer.text;
  add_part(text, "", result.out);
  add_part(text, "stderr:", result.err);
  if (result.status == CallStatus::timeout) add_part(text, "", "its time was over\n");
  if (result.exit_code != 0)
    add_part(text, "", "exit code " + std::to_string(result.exit_code) + "\n");
  add_notes(text, result);
  if (text.empty()) text = "(no output)";
  return answer;
}

std::size_t weight(const CallReport& report) {
  std::size_t sum = report.out.size() + report.err.size();
  for (const SessionFile& file : report.files) sum += file.content.size();
  return sum;
}

std::size_t weight(const Representations& all) {
  std::size_t sum = 0;
  for (const auto& [mime, value] : all) sum += value.size();
  return sum;
}

std::size_t weight(const PythonResult& result) {
  std::size_t sum = weight(static_cast<const CallReport&>(result)) + weight(result.result_data);
  if (result.result) sum += result.result->size();
  if (result.exception) sum += result.exception->traceback.size();
  for (const Representations& display : result.displays) sum += weight(display);
  for (const std::string& image : result.images) sum += image.size();
  for (const std::string& frame : result.video_frames) sum += frame.size();
  return sum;
}

std::size_t weight(const ShellResult& result) {
  std::size_t sum = weight(static_cast<const CallReport&>(result));
  for (const RunCommand& command : result.commands) sum += command.command.size();
  return sum;
}

// An output file that cannot be made is the caller's to name better.
ToolAnswer failed(const Error& error, const ToolCall& call) {
  const bool is_callers =
      call.arguments.contains("output_file") && (error.err == EEXIST || error.err == EACCES);
  return is_callers ? tool_error("output_file", error.message()) : failure(error);
}

}  // namespace

template <class Call, class Made>
Async<ToolAnswer> Dispatcher::run_code(ToolCall& call, Call asked, session::Worker worker,
                                       Async<Result<Made>> (session::Engine::*method)(std::string,
                                                                                      Call)) {
  const std::shared_ptr<session::Turns> turns = lane(call.session, call.tool);
  const auto wish = std::make_shared<session::Turns::Wish>(loop_);
  const Cancel::Hearing waiting(call.cancel, [wish] { wish->give_up(); });
  const std::optional<session::Turns::Turn> turn = co_await turns->take(wish);
  if (!turn || (call.cancel != nullptr && call.cancel->asked()))
    co_return tool_error("cancelled", "cancelled before it began");
  if (is_closed(call)) co_return tool_error("failed", "the session was closed");
  asked.on_output = call.on_output;
  const std::string id = call.session;
  const Cancel::Hearing hearing(call.cancel, [this, id, worker] {
    (void)engine_.interrupt(id, worker);  // a session that has gone runs nothing
  });
  Result<Made> result = co_await (engine_.*method)(id, std::move(asked));
  if (!result) co_return failed(result.error(), call);
  const std::size_t size = weight(*result);
  auto build = [made = *std::move(result), wants_whole = call.wants_whole] {
    json::object whole = session::to_json(made);
    ToolAnswer answer = answer_of(made, whole);
    if (wants_whole) answer.whole = std::move(whole);
    return answer;
  };
  const session::Beside mine = beside(call.principal);
  co_return co_await mine.run(size, std::move(build));
}

Async<ToolAnswer> Dispatcher::run_python(ToolCall& call) {
  PythonCall asked = python_call(call.arguments);
  const auto place = std::make_shared<Place>(shown_, call.principal);
  asked.may_keep = [place](std::size_t bytes) { return place->hold(bytes); };
  ToolAnswer answer =
      co_await run_code(call, std::move(asked), session::Worker::python, &session::Engine::python);
  answer.kept = place;
  co_return answer;
}

Async<ToolAnswer> Dispatcher::run_shell(ToolCall& call) {
  ShellCall asked = shell_call(call.arguments);
  co_return co_await run_code(call, std::move(asked), session::Worker::shell,
                              &session::Engine::shell);
}

Async<ToolAnswer> Dispatcher::run_sessions(ToolCall& call) {
  ToolAnswer answer;
  if (call.tool == "session_list") {
    json::array list;
    co_await engine_.measure([&](const std::string& id) { return may_use(id, call.principal); });
    for (const SessionInfo& info : sessions(call.principal)) {
      if (call.only_this_session && info.id != call.session) continue;
      const std::string name(name_in(info.id));
      json::object one;
      one["session"] = name;
      one["busy"] = info.busy;
      one["idle_ms"] = info.idle.count();
      one["memory_kb"] = info.memory_kb;
      answer.text += name + (info.busy ? " busy\n" : " idle\n");
      list.push_back(std::move(one));
    }
    if (list.empty()) answer.text = "there are no sessions";
    answer.structured["sessions"] = std::move(list);
    co_return answer;
  }
  Status done;
  if (call.tool == "session_close") {
    done = close(call.session, call.principal);
    answer.text = "closed";
  } else if (call.tool == "session_reset") {
    done = co_await engine_.reset(call.session);
    answer.text = "the Python interpreter is a fresh one; files and the shell are as they were";
  } else {
    co_return tool_error("unknown_tool", "there is no tool " + call.tool);
  }
  if (!done) co_return tool_error("not_found", done.error().message());
  answer.structured["session"] = name_in(call.session);
  answer.structured["status"] = call.tool == "session_close" ? "closed" : "reset";
  co_return answer;
}

}  // namespace belljar::server
