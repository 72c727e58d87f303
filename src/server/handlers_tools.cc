// Tools by name, what waits for a person, and the dispatch of mistral.rs.
#include "base/json_size.h"
#include "policy/keys.h"
#include "policy/permissions.h"
#include "server/fields.h"
#include "server/handlers.h"
#include "server/mcp_offer.h"
#include "server/tool_calls.h"
#include "tools/tool_table.h"

namespace belljar::server {
namespace {

namespace json = boost::json;

Response answer_tools(tools::Facts facts, const SessionEntry& entry = {}) {
  for (const auto& [name, skill] : entry.skills)
    facts.skills.push_back({.path = "skills/" + name, .about = skill.description});
  json::object answer;
  answer["tools"] = tools::tools_as_json(facts);
  return answer_json(answer);
}

std::string which_tool(std::string_view wrong) {
  const std::string_view near = nearest(wrong, tool_names());
  return (near.empty() ? "" : "did you mean " + std::string(near) + "? ") +
         std::string("GET /v1/tools lists what there is");
}

// ---- dispatch -----------------------------------------------------------------

Response content(const std::string& text) {
  json::object answer;
  answer["content"] = text;
  return answer_json(answer);
}

struct Dispatched {
  std::string tool;
  json::object arguments;
  std::string continues;  // a call that was begun before
  std::string wrong;      // what the model is told instead
};

constexpr std::size_t kMaxToolName = 256;

std::string own_name(std::string_view name) {
  if (name == "mistralrs_execute_python") return "python";
  if (name == "mistralrs_shell") return "shell";
  return std::string(name);
}

// A model has only the tools it was told of: it asks again by a comment in one of them.
std::string continued_call(const json::object& arguments) {
  constexpr std::string_view kWord = "#continue ";
  std::string_view text;
  if (const json::value* code = arguments.if_contains("code"); code != nullptr)
    if (code->is_string()) text = code->get_string();
  if (const json::value* list = arguments.if_contains("commands"); list != nullptr)
    if (list->is_array() && list->get_array().size() == 1 && list->get_array()[0].is_string())
      text = list->get_array()[0].get_string();
  while (text.ends_with('\n') || text.ends_with(' ')) text.remove_suffix(1);
  return text.starts_with(kWord) ? std::string(text.substr(kWord.size())) : std::string();
}

// Nothing: it has too many values, or is no JSON, which the error says.
json::value parse_bounded(std::string_view text, boost::system::error_code& error) {
  if (has_more_values(text, kMaxJsonValues)) return nullptr;
  json::parse_options options;
  options.max_depth = kMaxJsonDepth;
  return json::parse(text, error, {}, options);
}

Dispatched read_dispatch(const std::string& body) {
  Dispatched call;
  boost::system::error_code error;
  json::value value = parse_bounded(body, error);
  if (error || !value.is_object()) {
    call.wrong = "error: the request is no JSON object, or one with too many values";
    return call;
  }
  json::object& request = value.get_object();
  if (const json::value* name = request.if_contains("name"); name != nullptr && name->is_string())
    call.tool = own_name(std::string_view(name->get_string()));
  if (call.tool.empty()) call.wrong = "error: no tool was named";
  if (call.tool.size() > kMaxToolName) call.wrong = "error: there is no tool of that name";
  json::value* arguments = request.if_contains("arguments");
  if (arguments != nullptr && arguments->is_object())
    call.arguments = std::move(arguments->get_object());
  // A raw text is what was left of JSON that could not be read.
  if (arguments != nullptr && arguments->is_string()) {
    json::value inner = parse_bounded(arguments->get_string(), error);
    const bool is_object = !error && inner.is_object();
    if (is_object) call.arguments = std::move(inner.get_object());
    if (!is_object)
      call.wrong = "error: the arguments are no JSON object, or one with too many values" +
                   (error ? ": " + error.message() : std::string()) +
                   "; call the tool again with valid JSON";
  }
  call.continues = continued_call(call.arguments);
  return call;
}

// `waits`: for a person, and not for its end.
std::string still_running(const Continuations::Job& job, bool waits) {
  const std::string again = job.tool == "shell" ? R"(commands ["#continue )" + job.id + R"("])"
                                                : "code \"#continue " + job.id + "\"";
  const std::string tail =
      job.so_far.substr(job.so_far.size() - std::min(job.so_far.size(), kMaxSoFar));
  std::string text = waits ? "waiting for a person to approve this call (approval " + job.approval +
                                 "); " + std::string(kHowToApprove) + ". It is call " + job.id
                           : "still running, as call " + job.id;
  text += ". To wait on for its result, call this tool again with " + again + ".";
  if (!tail.empty()) text += "\noutput so far:\n" + tail;
  return text;
}

// A dispatch carries text alone, and a model shall not wait for what does not come.
std::string in_words(const ToolAnswer& answer) {
  std::string text = answer.is_error ? "error (" + answer.error_type + "): " : "";
  text += answer.text;
  if (answer.images.empty()) return text;
  if (!text.ends_with('\n')) text += "\n";
  const std::size_t count = answer.images.size();
  return text + "note: " + (count == 1 ? "an image" : std::to_string(count) + " images") +
         " cannot be shown here, where answers are text; save what a person shall see as a file\n";
}

Async<Response> answer_tool(const session::Beside& beside, ToolAnswer answer, std::string viewer) {
  std::size_t size = answer.text.size() + weight(answer.structured, session::Beside::kLittle);
  for (const Image& image : answer.images) size += image.base64.size();
  auto write = [answer = std::move(answer), viewer = std::move(viewer)] {
    const json::value object(to_json(answer, viewer));
    return answer_json(object);
  };
  co_return co_await beside.run(size, std::move(write));
}

Async<void> work_off(std::shared_ptr<App> app, std::shared_ptr<Continuations::Job> job,
                     ToolCall call, std::shared_ptr<const Admitted> admitted) {
  ToolAnswer answer = co_await call_tool(*app, std::move(call));
  job->finish(std::move(answer));
  admitted.reset();
}

// The session of the address; the first call makes it, under the operator's policy.
Async<std::expected<const SessionEntry*, Response>> dispatch_session(App& app,
                                                                     const Request& request) {
  const Principal& principal = principal_of(request);
  const std::string id = whole_name_for(principal.name, parameter(request, "session"));
  if (app.book().find(id, principal) != nullptr) co_return co_await app.use_session(id, principal);
  if (!principal.session.empty() || owner_in(id) != principal.name)
    co_return std::unexpected(refuse(kNotFound, "there is no such session", kWhichSessions));
  SessionEntry entry;
  entry.name = name_in(id);
  entry.owner = principal.name;
  entry.policy = app.setup().loaded.policy;
  entry.profile = entry.policy.profile;
  co_return app.open_session(std::move(entry));
}

}  // namespace

Async<Response> list_tools(App& app, Request) { co_return answer_tools(app.facts()); }

Async<Response> list_session_tools(App& app, Request request) {
  std::expected<const SessionEntry*, Response> entry = co_await app.use_session(request);
  if (!entry) co_return std::move(entry.error());
  const std::string id = (*entry)->id();
  const Result<session::SessionView> view =
      co_await app.engine().view(id, principal_of(request).name);
  if (!view) co_return refuse(kSessionFailed, view.error());
  const SessionEntry* still = app.book().find(id, principal_of(request));
  if (still == nullptr) co_return refuse(kNotFound, "there is no such session", kWhichSessions);
  co_return answer_tools(facts_of(*view), *still);
}

Async<Response> call_session_tool(App& app, Request request) {
  // First: a session that was found may be closed while something is waited for.
  const session::Beside beside = app.beside(principal_of(request));
  std::expected<json::object, Response> body = co_await json_body(beside, request);
  if (!body) co_return std::move(body.error());
  std::expected<const SessionEntry*, Response> entry = co_await app.use_session(request);
  if (!entry) co_return std::move(entry.error());
  const std::string tool = parameter(request, "tool");
  // Who uses what another shares does not act in that other's name on anything else.
  const Principal& principal = principal_of(request);
  if (tool.starts_with("session_") && (*entry)->owner != principal.name)
    co_return refuse(kForbidden, "the session belongs to another token", kOnlyItsOwner);
  ToolCall call = tool_call(**entry, principal, tool, std::move(*body));
  ToolAnswer answer = co_await call_tool(app, std::move(call));
  const std::optional<Fault> fault = fault_of(answer);
  if (fault && fault->type == kNotFound.type && answer.error_type == "unknown_tool")
    co_return refuse(kNotFound, answer.text, which_tool(tool));
  co_return co_await answer_tool(beside, std::move(answer), principal.name);
}

// ---- approvals ----------------------------------------------------------------

Async<Response> list_approvals(App& app, Request request) {
  json::array list;
  for (const Approval& approval : app.dispatcher().approvals().pending())
    if (app.book().find(approval.session, principal_of(request)) != nullptr)
      list.push_back(approval.to_json(principal_of(request).name));
  json::object answer;
  answer["approvals"] = std::move(list);
  const session::Beside beside = app.beside(principal_of(request));
  co_return co_await answer_json(beside, std::move(answer));
}

Async<Response> get_approval(App& app, Request request) {
  const std::optional<Approval> found = app.dispatcher().approvals().find(parameter(request, "id"));
  if (!found || app.book().find(found->session, principal_of(request)) == nullptr)
    co_return refuse(kNotFound, "nothing of that id waits for approval", kWhichApprovals);
  const json::object answer = found->to_json(principal_of(request).name);
  co_return answer_json(answer);
}

Async<Response> decide_approval(App& app, Request request) {
  const std::string id = parameter(request, "id");
  const std::optional<Approval> found = app.dispatcher().approvals().find(id);
  if (!found || app.book().find(found->session, principal_of(request)) == nullptr)
    co_return refuse(kNotFound, "nothing of that id waits for approval", kWhichApprovals);
  const session::Beside beside = app.beside(principal_of(request));
  std::expected<json::object, Response> body = co_await json_body(beside, request);
  if (!body) co_return std::move(body.error());
  Fields fields(std::move(*body));
  const std::string word = fields.required_text("decision");
  const bool remember = fields.flag("remember_for_session");
  const std::string scope = fields.text("scope").value_or(remember ? "tool" : "once");
  Decision decision;
  decision.pattern = fields.text("pattern").value_or("");
  decision.message = fields.text("message").value_or("");
  decision.by = principal_of(request).name;
  if (std::optional<Response> refusal = fields.refusal()) co_return std::move(*refusal);
  if (word != "approve" && word != "deny")
    co_return refuse(kBadRequest, "decision: must be approve or deny",
                     R"(send {"decision": "approve"} or {"decision": "deny", "message": "..."})");
  decision.approved = word == "approve";
  const std::optional<Scope> parsed = parse_scope(scope);
  if (!parsed)
    co_return refuse(kBadRequest, "scope: must be once, tool, same or pattern",
                     R"(for a pattern send {"scope": "pattern", "pattern": "git *"} besides)");
  decision.scope = *parsed;
  if (const Status fits = check_length(decision); !fits)
    co_return refuse(kBadRequest, fits.error());
  const Status decided = app.dispatcher().approvals().decide(id, std::move(decision));
  if (!decided) co_return refuse(kConflict, decided.error());
  json::object answer;
  answer["approval_id"] = id;
  answer["decision"] = word;
  co_return answer_json(answer);
}

// Always 200 with `content`, in time: with anything else the model would hear nothing.
Async<Response> dispatch(App& app, Request request) {
  const Clock::time_point until = Clock::now() + app.setup().loaded.server.dispatch_wait;
  const session::Beside beside = app.beside(principal_of(request));
  const std::size_t size = request.body.size();
  auto read = [body = std::move(request.body)] { return read_dispatch(body); };
  Dispatched asked = co_await beside.run(size, std::move(read));
  const std::expected<const SessionEntry*, Response> entry =
      co_await dispatch_session(app, request);
  if (!entry) co_return content("error: this session cannot be used now");
  const std::string session = (*entry)->id();
  if (!asked.wrong.empty()) co_return content(asked.wrong);
  std::shared_ptr<Continuations::Job> job;
  // Who uses what another shares does not act in that other's name on anything else.
  if (asked.tool.starts_with("session_") && (*entry)->owner != principal_of(request).name)
    co_return content("error: the session belongs to another token");
  if (asked.continues.empty()) {
    job = app.continuations().add(session, asked.tool);
    if (job == nullptr) co_return content("error: too many calls are still running");
    ToolCall call =
        tool_call(**entry, principal_of(request), asked.tool, std::move(asked.arguments));
    call.only_this_session = true;
    call.on_output = [weak = std::weak_ptr(job)](OutputStream, std::string_view bytes) {
      if (const std::shared_ptr<Continuations::Job> mine = weak.lock()) mine->hear(bytes);
    };
    call.on_approval = [weak = std::weak_ptr(job)](const Approval& approval) {
      if (const std::shared_ptr<Continuations::Job> mine = weak.lock())
        mine->approval = approval.id;
    };
    begin(app.loop(), work_off(app.shared_from_this(), job, std::move(call), request.admitted));
  } else {
    job = app.continuations().find(session, asked.continues);
    if (job == nullptr) co_return content("error: there is no call " + asked.continues);
  }
  const bool done = co_await Continuations::wait(job, until);
  if (!done) {
    const bool waits = app.dispatcher().approvals().find(job->approval).has_value();
    co_return content(still_running(*job, waits));
  }
  app.continuations().remove(session, job->id);
  const std::size_t length = job->answer->text.size();
  auto write = [job] { return content(in_words(*job->answer)); };
  co_return co_await beside.run(length, std::move(write));
}

}  // namespace belljar::server
