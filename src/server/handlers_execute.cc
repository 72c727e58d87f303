// Calls of Python and the shell: answered when they are done, or streamed meanwhile.
#include "server/fields.h"
#include "server/handlers.h"
#include "session/report.h"

namespace belljar::server {
namespace {

namespace json = boost::json;

// One call that is on its way, and who hears of it.
struct Running {
  std::shared_ptr<App> app;
  std::shared_ptr<const Admitted> admitted;  // its place
  std::string session;
  std::string_view tool;
  std::shared_ptr<EventStream> stream;  // nullptr: nobody
  Utf8Pieces out, err;
  bool ends_session = false;

  void say(std::string_view stream_name, std::string text) {
    if (text.empty()) return;
    json::object data{{"stream", stream_name}, {"text", std::move(text)}};
    if (stream != nullptr) stream->send("output", data);
    if (app->events().is_heard()) app->events().publish("output", session, std::move(data));
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

template <class T>
void tell_parts(EventStream& stream, const T& result) {
  if constexpr (std::is_same_v<T, PythonResult>)
    for (const std::string& image : result.images)
      stream.send("image", {{"mime", "image/png"}, {"base64", image}});
  for (const SessionFile& file : result.files)
    stream.send("file", {{"name", file.name}, {"size", file.size}, {"mime", file.mime}});
}

Async<Result<PythonResult>> run(App& app, std::string session, PythonCall call) {
  return app.engine().python(std::move(session), std::move(call));
}
Async<Result<ShellResult>> run(App& app, std::string session, ShellCall call) {
  return app.engine().shell(std::move(session), std::move(call));
}

// To its end, whoever still waits for it.
template <class Answer, class Call>
Async<Response> finish(std::shared_ptr<Running> running, Call call) {
  App& app = *running->app;
  app.events().publish("call_started", running->session, {{"tool", running->tool}});
  const Clock::time_point began = Clock::now();
  const Result<Answer> result = co_await run(app, running->session, std::move(call));
  const auto time = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - began);
  running->say("stdout", running->out.rest());
  running->say("stderr", running->err.rest());
  const std::string_view status = result ? name(result->status) : "failed";
  app.metrics().count_call(running->tool, status, time);
  app.events().publish("call_finished", running->session,
                       {{"tool", running->tool}, {"status", status}});
  if (running->ends_session && !app.has_ended()) app.close_session(running->session);
  if (!result) {
    Response refusal = refuse(kSessionFailed, result.error());
    if (running->stream != nullptr)
      running->stream->send_last("error", error_object(kSessionFailed, result.error()));
    co_return refusal;
  }
  json::object answer = session::to_json(*result);
  answer["session_id"] = running->session;
  if (running->stream != nullptr) {
    tell_parts(*running->stream, *result);
    running->stream->send_last("result", answer);
    co_return Response{};
  }
  co_return answer_json(answer);
}

template <class Answer, class Call>
Async<void> finish_streamed(std::shared_ptr<Running> running, Call call) {
  co_await finish<Answer>(std::move(running), std::move(call));
}

bool wants_stream(const Request& request) {
  const std::string* accept = request.header("accept");
  return accept != nullptr && accept->find("text/event-stream") != std::string::npos;
}

template <class Answer, class Call>
Async<Response> execute(App& app, const Request& request, std::string session, Call call,
                        std::string_view tool, bool streamed, bool ends_session) {
  auto running = std::make_shared<Running>();
  running->app = app.shared_from_this();
  running->admitted = request.admitted;
  running->session = std::move(session);
  running->tool = tool;
  running->ends_session = ends_session;
  if (streamed || app.events().is_heard()) call.on_output = listener(running);
  if (!streamed) co_return co_await finish<Answer>(std::move(running), std::move(call));
  auto stream = std::make_shared<EventStream>(app.loop(), EventStream::Overflow::loses_event);
  running->stream = stream;
  begin(app.loop(), finish_streamed<Answer>(std::move(running), std::move(call)));
  Response response;
  response.headers = {{"Content-Type", "text/event-stream"}};
  response.body = std::move(stream);
  co_return response;
}

template <class Call>
struct Asked {
  Call call;
  bool streamed = false;
};

std::expected<Asked<PythonCall>, Response> python_call(const Request& request) {
  std::expected<json::object, Response> body = json_body(request);
  if (!body) return std::unexpected(std::move(body.error()));
  Fields fields(std::move(*body));
  Asked<PythonCall> asked;
  asked.call.code = fields.required_text("code");
  asked.call.timeout = fields.milliseconds("timeout_ms");
  asked.call.outputs = fields.texts("outputs");
  asked.call.output_file = fields.text("output_file");
  asked.streamed = fields.flag("stream") || wants_stream(request);
  if (std::optional<Response> refusal = fields.refusal())
    return std::unexpected(std::move(*refusal));
  return asked;
}

std::expected<Asked<ShellCall>, Response> shell_call(const Request& request) {
  std::expected<json::object, Response> body = json_body(request);
  if (!body) return std::unexpected(std::move(body.error()));
  Fields fields(std::move(*body));
  Asked<ShellCall> asked;
  asked.call.commands = fields.texts("commands");
  asked.call.one_shot = fields.flag("one_shot");
  asked.call.timeout = fields.milliseconds("timeout_ms");
  asked.call.max_output = fields.number("max_output_length");
  asked.call.outputs = fields.texts("outputs");
  asked.call.output_file = fields.text("output_file");
  asked.streamed = fields.flag("stream") || wants_stream(request);
  if (std::optional<Response> refusal = fields.refusal())
    return std::unexpected(std::move(*refusal));
  if (asked.call.commands.empty())
    return std::unexpected(refuse(kBadRequest, "commands: must be a list of at least one"));
  for (const std::string& command : asked.call.commands)
    if (command.find('\0') != command.npos)
      return std::unexpected(refuse(kBadRequest, "commands: a command holds a NUL byte"));
  return asked;
}

// A session for one call, under the operator's policy.
std::expected<const SessionEntry*, Response> open_for_once(App& app, const Request& request) {
  SessionEntry entry;
  entry.owner = principal_of(request).name;
  entry.policy = app.setup().loaded.policy;
  entry.profile = entry.policy.profile;
  return app.open_session(std::move(entry));
}

}  // namespace

Async<Response> execute_python(App& app, Request request) {
  std::expected<const SessionEntry*, Response> entry = app.use_session(request);
  if (!entry) co_return std::move(entry.error());
  std::expected<Asked<PythonCall>, Response> asked = python_call(request);
  if (!asked) co_return std::move(asked.error());
  co_return co_await execute<PythonResult>(app, request, (*entry)->id, std::move(asked->call),
                                           "python", asked->streamed, false);
}

Async<Response> execute_shell(App& app, Request request) {
  std::expected<const SessionEntry*, Response> entry = app.use_session(request);
  if (!entry) co_return std::move(entry.error());
  std::expected<Asked<ShellCall>, Response> asked = shell_call(request);
  if (!asked) co_return std::move(asked.error());
  co_return co_await execute<ShellResult>(app, request, (*entry)->id, std::move(asked->call),
                                          "shell", asked->streamed, false);
}

Async<Response> execute_python_once(App& app, Request request) {
  std::expected<Asked<PythonCall>, Response> asked = python_call(request);
  if (!asked) co_return std::move(asked.error());
  std::expected<const SessionEntry*, Response> entry = open_for_once(app, request);
  if (!entry) co_return std::move(entry.error());
  co_return co_await execute<PythonResult>(app, request, (*entry)->id, std::move(asked->call),
                                           "python", asked->streamed, true);
}

Async<Response> execute_shell_once(App& app, Request request) {
  std::expected<Asked<ShellCall>, Response> asked = shell_call(request);
  if (!asked) co_return std::move(asked.error());
  std::expected<const SessionEntry*, Response> entry = open_for_once(app, request);
  if (!entry) co_return std::move(entry.error());
  co_return co_await execute<ShellResult>(app, request, (*entry)->id, std::move(asked->call),
                                          "shell", asked->streamed, true);
}

}  // namespace belljar::server
