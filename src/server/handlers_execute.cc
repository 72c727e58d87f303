// Calls of tools: answered when they are done, or streamed meanwhile. All go through the
// dispatcher, so that permissions, approvals and the audit trail are the same for all.
#include "base/json_size.h"
#include "server/fields.h"
#include "server/handlers.h"
#include "server/limits.h"
#include "server/processes.h"
#include "server/run_program.h"
#include "server/tool_calls.h"
#include "session/output_file.h"
#include "tools/arguments.h"
#include "tools/tool_table.h"

namespace belljar::server {
namespace {

namespace json = boost::json;

constexpr std::string_view kSpawn = "process_start";  // what it is permitted as

// One call that is on its way, and who hears of it.
struct Running {
  std::shared_ptr<App> app;
  std::shared_ptr<const Admitted> admitted;  // its place
  std::string session;                       // its id
  std::string tool;
  std::shared_ptr<EventStream> stream;  // nullptr: nobody
  Utf8Pieces out, err;
  std::string call;  // by which it can be asked to stop
  bool ends_session = false;

  void say(std::string_view stream_name, std::string text) {
    if (text.empty()) return;
    json::object data{{"stream", stream_name}, {"text", std::move(text)}};
    if (stream != nullptr) stream->send("output", data);
    if (app->events().is_heard()) app->tell("output", session, std::move(data));
  }
};

OnOutput listener(const std::shared_ptr<Running>& running) {
  // Weak: the call keeps the listener, and what runs the call keeps the call.
  return [weak = std::weak_ptr(running)](OutputStream stream, std::string_view bytes) {
    const std::shared_ptr<Running> self = weak.lock();
    if (self == nullptr) return;
    if (stream == OutputStream::out) self->say("stdout", self->out.take(bytes));
    if (stream == OutputStream::err) self->say("stderr", self->err.take(bytes));
  };
}

// The parts of an answer as events, and the whole last.
std::vector<std::string> events_of(const ToolAnswer& answer) {
  std::vector<std::string> events;
  for (const Image& image : answer.images)
    events.push_back(rendered_event("image", {{"mime", image.mime}, {"base64", image.base64}}));
  for (const FileLink& file : answer.files)
    events.push_back(
        rendered_event("file", {{"name", file.name}, {"size", file.size}, {"mime", file.mime}}));
  events.push_back(rendered_event("result", answer.whole));
  return events;
}

// To its end, whoever still waits for it.
Async<Response> finish(std::shared_ptr<Running> running, ToolCall call) {
  App& app = *running->app;
  ToolAnswer answer = co_await call_tool(app, std::move(call));
  running->say("stdout", running->out.rest());
  running->say("stderr", running->err.rest());
  if (running->ends_session && !app.has_ended()) app.close_session(running->session);
  std::optional<Fault> fault = fault_of(answer);
  // A session that somebody closed meanwhile has not failed.
  if (fault && fault->type == kSessionFailed.type && !app.has_ended() &&
      !app.engine().has(running->session) && !running->ends_session)
    fault = kSessionClosed;
  const Error error{answer.text, 0, {}};
  if (fault && running->stream != nullptr)
    running->stream->send_last("error", error_object(*fault, error));
  if (fault) co_return refuse(*fault, error);
  answer.whole["session_id"] = called_by(running->admitted->principal.name, running->session);
  const session::Beside beside = app.beside(running->admitted->principal);
  if (running->stream == nullptr) co_return co_await answer_json(beside, std::move(answer.whole));
  const std::size_t size = weight(answer.whole, session::Beside::kLittle);
  auto write = [answer = std::move(answer)] { return events_of(answer); };
  std::vector<std::string> events = co_await beside.run(size, std::move(write));
  std::string last = std::move(events.back());
  events.pop_back();
  for (std::string& event : events) running->stream->send_text(std::move(event));
  running->stream->send_last_text(std::move(last));
  co_return Response{};
}

Async<void> finish_streamed(std::shared_ptr<Running> running, ToolCall call) {
  co_await finish(running, std::move(call));
  running->app->running_calls().remove(running->call);
}

bool wants_stream(const Request& request) {
  const std::string* accept = request.header("accept");
  return accept != nullptr && accept->find("text/event-stream") != std::string::npos;
}

struct Asked {
  json::object arguments;
  std::string agent;
  bool streamed = false;
  std::optional<std::chrono::milliseconds> time;
};

// As process_start has it; no terminal, since nobody types.
void read_spawn(Fields& fields) {
  (void)fields.texts("arguments");
  (void)fields.text("folder");
  (void)fields.object("environment");
}

void read_python(Fields& fields, std::string& wrong) {
  if (fields.required_text("code").size() > kMaxCode) wrong = "code: it is larger than 16 MiB";
}

void read_shell(Fields& fields, json::object& arguments, std::string& wrong) {
  std::size_t size = 0;
  for (const std::string& command : fields.texts("commands")) {
    size += command.size();
    if (command.find('\0') != command.npos) wrong = "commands: a command holds a NUL byte";
  }
  if (size > kMaxCode) wrong = "commands: they are larger than 16 MiB";
  if (const auto length = fields.number("max_output_length"))
    arguments["max_output_length"] = std::min<std::uint64_t>(*length, kMaxCode);
  (void)fields.flag("one_shot");
}

void read_outputs(Fields& fields, std::string& wrong) {
  (void)fields.texts("outputs");
  const std::optional<std::string> output_file = fields.text("output_file");
  if (output_file && !session::OutputFile::is_name(*output_file))
    wrong = "output_file: up to 128 letters, digits and - _ . and no dot at the beginning";
}

// Read strictly; what the values must be beyond their kind the tool says.
std::expected<Asked, Response> read_text(const Request& request, const std::string& tool) {
  std::expected<json::object, Response> body = json_body(request);
  if (!body) return std::unexpected(std::move(body.error()));
  Asked asked;
  for (const auto& [name, value] : *body)
    if (!value.is_null()) asked.arguments[name] = value;
  Fields fields(std::move(*body));
  std::string wrong;
  if (tool == "python") read_python(fields, wrong);
  if (tool == "shell") read_shell(fields, asked.arguments, wrong);
  asked.time = fields.milliseconds("timeout_ms");
  if (asked.time) asked.arguments["timeout_ms"] = asked.time->count();
  if (tool == kSpawn) {
    read_spawn(fields);
    asked.arguments.erase("timeout_ms");  // it is no argument of the tool's
  } else {
    read_outputs(fields, wrong);
  }
  asked.agent = fields.text("agent").value_or("");
  asked.streamed = fields.flag("stream") || wants_stream(request);
  if (std::optional<Response> refusal = fields.refusal())
    return std::unexpected(std::move(*refusal));
  if (!wrong.empty()) return std::unexpected(refuse(kBadRequest, wrong));
  asked.arguments.erase("stream");
  asked.arguments.erase("agent");
  // Now, since a stream that has begun has answered 200.
  const tools::Status fits = tools::check_arguments(*tools::find_tool(tool), asked.arguments);
  if (!fits) return std::unexpected(refuse(kBadRequest, fits.error()));
  if (tool != kSpawn) return asked;
  const std::expected<ProgramCall, std::string> program = program_call(asked.arguments);
  if (!program) return std::unexpected(refuse(kBadRequest, program.error()));
  return asked;
}

Async<std::expected<Asked, Response>> read_call(App& app, Request& request, std::string tool) {
  Request part;
  part.headers = request.headers;
  part.body = std::move(request.body);
  const std::size_t size = part.body.size();
  auto read = [part = std::move(part), tool = std::move(tool)] { return read_text(part, tool); };
  const session::Beside beside = app.beside(principal_of(request));
  co_return co_await beside.run(size, std::move(read));
}

Async<Response> execute(App& app, const Request& request, const SessionEntry& entry, Asked asked,
                        std::string tool, bool ends_session) {
  auto running = std::make_shared<Running>();
  running->app = app.shared_from_this();
  running->admitted = request.admitted;
  running->session = entry.id();
  running->tool = tool;
  running->ends_session = ends_session;
  ToolCall call =
      tool_call(entry, principal_of(request), std::move(tool), std::move(asked.arguments));
  call.agent = std::move(asked.agent);
  call.wants_whole = true;
  if (running->tool == kSpawn)
    call.instead = [&engine = app.engine(), time = asked.time](ToolCall& permitted) {
      return run_program(engine, permitted, time);
    };
  if (asked.streamed || app.events().is_heard()) call.on_output = listener(running);
  if (!asked.streamed) co_return co_await finish(std::move(running), std::move(call));
  auto stream = std::make_shared<EventStream>(app.loop(), EventStream::Overflow::loses_event);
  running->stream = stream;
  app.watch_stream(principal_of(request), stream);
  call.on_approval = [stream, viewer = principal_of(request).name](const Approval& approval) {
    stream->send("agentic_tool_approval_required", approval.to_json(viewer));
  };
  Response response;
  response.headers = {{"Content-Type", "text/event-stream"}};
  if (running->tool != kSpawn) {
    call.cancel = std::make_shared<Cancel>();
    running->call = app.running_calls().add(entry.id(), call.cancel);
    response.headers.emplace_back("Belljar-Call", running->call);
  }
  begin(app.loop(), finish_streamed(std::move(running), std::move(call)));
  response.body = std::move(stream);
  co_return response;
}

Async<Response> execute_in_session(App& app, Request request, std::string tool) {
  // First: a session that was found may be closed while something is waited for.
  std::expected<Asked, Response> asked = co_await read_call(app, request, tool);
  if (!asked) co_return std::move(asked.error());
  std::expected<const SessionEntry*, Response> entry = co_await app.use_session(request);
  if (!entry) co_return std::move(entry.error());
  co_return co_await execute(app, request, **entry, std::move(*asked), std::move(tool), false);
}

// In a session for one call, under the operator's policy.
Async<Response> execute_once(App& app, Request request, std::string tool) {
  std::expected<Asked, Response> asked = co_await read_call(app, request, tool);
  if (!asked) co_return std::move(asked.error());
  SessionEntry fresh;
  fresh.owner = principal_of(request).name;
  fresh.policy = app.setup().loaded.policy;
  fresh.profile = fresh.policy.profile;
  std::expected<const SessionEntry*, Response> entry = app.open_session(std::move(fresh));
  if (!entry) co_return std::move(entry.error());
  co_return co_await execute(app, request, **entry, std::move(*asked), std::move(tool), true);
}

}  // namespace

Async<Response> execute_python(App& app, Request request) {
  return execute_in_session(app, std::move(request), "python");
}
Async<Response> execute_shell(App& app, Request request) {
  return execute_in_session(app, std::move(request), "shell");
}
Async<Response> execute_spawn(App& app, Request request) {
  return execute_in_session(app, std::move(request), std::string(kSpawn));
}
Async<Response> execute_python_once(App& app, Request request) {
  return execute_once(app, std::move(request), "python");
}
Async<Response> execute_shell_once(App& app, Request request) {
  return execute_once(app, std::move(request), "shell");
}
Async<Response> execute_spawn_once(App& app, Request request) {
  return execute_once(app, std::move(request), std::string(kSpawn));
}

}  // namespace belljar::server
