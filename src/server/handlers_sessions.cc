#include <array>
#include <ctime>
#include <optional>
#include <set>

#include "server/fields.h"
#include "server/handlers.h"
#include "server/policy_request.h"
#include "server/session_skills.h"

namespace belljar::server {
namespace {

namespace json = boost::json;

std::string when(std::chrono::system_clock::time_point time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  if (::gmtime_r(&seconds, &parts) == nullptr) return {};
  std::array<char, 32> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text.data(), size};
}

json::object to_json(const SessionEntry& entry, const std::optional<SessionInfo>& info,
                     const Principal& viewer) {
  json::object object{{"id", called_by(viewer.name, entry.id())},
                      {"owner", entry.owner},
                      {"shared", entry.shared},
                      {"profile", entry.profile},
                      {"skills", json::array()},
                      {"created_at", when(entry.created)},
                      {"busy", false},
                      {"idle_ms", 0},
                      {"memory_kb", 0}};
  for (const auto& skill : entry.skills) object["skills"].as_array().emplace_back(skill.first);
  if (info) {
    object["busy"] = info->busy;
    object["idle_ms"] = info->idle.count();
    object["memory_kb"] = info->memory_kb;
  }
  return object;
}

// What was done to a session, for all who listen and for who asked.
Response tell(App& app, std::string_view event, const std::string& id, const Request& request) {
  app.tell(event, id, {});
  const json::object answer{{"id", called_by(principal_of(request).name, id)}};
  return answer_json(answer);
}

}  // namespace

Async<Response> list_sessions(App& app, Request request) {
  json::array list;
  const Principal& principal = principal_of(request);
  std::set<std::string> listed;
  for (const SessionEntry* entry : app.book().all(principal)) listed.insert(entry->id());
  co_await app.engine().measure([&](const std::string& id) { return listed.contains(id); });
  if (app.has_ended()) co_return refuse(kUnavailable, "the server has stopped", kStartsAgain);
  for (const SessionEntry* entry : app.book().all(principal))
    list.push_back(to_json(*entry, app.engine().info(entry->id()), principal));
  json::object answer;
  answer["sessions"] = std::move(list);
  co_return answer_json(answer);
}

Async<Response> create_session(App& app, Request request) {
  const session::Beside beside = app.beside(principal_of(request));
  std::expected<json::object, Response> body = co_await json_body(beside, request);
  if (!body) co_return std::move(body.error());
  Fields fields(std::move(*body));
  SessionEntry entry;
  const std::optional<std::string> id = fields.text("id");
  entry.name = id.value_or("");
  entry.owner = principal_of(request).name;
  entry.shared = fields.flag("shared");
  const std::optional<std::string> profile = fields.text("profile");
  const json::object wishes = fields.object("policy").value_or(json::object());
  const std::vector<std::string> skills = fields.texts("skills");
  if (std::optional<Response> refusal = fields.refusal()) co_return std::move(*refusal);
  if (id && id->empty())
    co_return refuse(kBadRequest, "id: must not be empty", "leave it out, and one is made up");
  if (profile && profile->empty())
    co_return refuse(kBadRequest, "profile: must not be empty",
                     "leave it out for the server's own");
  std::expected<Policy, Response> policy =
      requested_policy(app.setup().loaded, app.setup().caller, profile.value_or(""), wishes);
  if (!policy) co_return std::move(policy.error());
  entry.profile = policy->profile;
  entry.policy = std::move(*policy);
  std::expected<void, Response> granted = grant_skills(app, skills, principal_of(request), entry);
  if (!granted) co_return std::move(granted.error());
  std::expected<const SessionEntry*, Response> made = app.open_session(std::move(entry));
  if (!made) co_return std::move(made.error());
  const json::object answer = to_json(**made, std::nullopt, principal_of(request));
  const std::string made_id = (*made)->id();
  const std::uint64_t number = app.engine().number(made_id);
  const Status linked = co_await link_skills(app, **made);
  if (app.has_ended()) co_return refuse(kUnavailable, "the server has stopped", kStartsAgain);
  if (!linked) {
    // And not the next of its name.
    if (app.engine().number(made_id) == number) app.close_session(made_id);
    co_return refuse(kSessionFailed, linked.error());
  }
  co_return answer_json(answer, 201);
}

Async<Response> get_session(App& app, Request request) {
  std::expected<const SessionEntry*, Response> entry = co_await app.use_session(request);
  if (!entry) co_return std::move(entry.error());
  const std::string id = (*entry)->id();
  json::object answer = to_json(**entry, app.engine().info(id), principal_of(request));
  Result<session::SessionView> view = co_await app.engine().view(id, principal_of(request).name);
  answer["plan"] = nullptr;
  if (view) answer["plan"] = std::move(view->plan);
  if (app.has_ended()) co_return refuse(kUnavailable, "the server has stopped", kStartsAgain);
  // What its guest uses was measured meanwhile.
  if (const auto info = app.engine().info(id)) answer["memory_kb"] = info->memory_kb;
  co_return answer_json(answer);
}

Async<Response> delete_session(App& app, Request request) {
  const SessionEntry* entry = app.book().find(parameter(request, "id"), principal_of(request));
  if (entry == nullptr) co_return refuse(kNotFound, "there is no such session", kWhichSessions);
  // To use what is shared is not to own it.
  const Principal& principal = principal_of(request);
  if (entry->owner != principal.name && !principal.may(Right::admin))
    co_return refuse(kForbidden, "the session belongs to another token", kOnlyItsOwner);
  app.close_session(entry->id());
  Response done;
  done.status = 204;
  co_return done;
}

Async<Response> reset_session(App& app, Request request) {
  std::expected<const SessionEntry*, Response> entry = co_await app.use_session(request);
  if (!entry) co_return std::move(entry.error());
  const std::string id = (*entry)->id();
  const Status done = co_await app.engine().reset(id);
  if (!done) co_return refuse(kUnavailable, done.error());
  co_return tell(app, "session_reset", id, request);
}

Async<Response> interrupt_session(App& app, Request request) {
  std::expected<const SessionEntry*, Response> entry = co_await app.use_session(request);
  if (!entry) co_return std::move(entry.error());
  const std::string id = (*entry)->id();
  // Many clients send {} where nothing is asked for, and do not say what it is.
  if (is_no_body(request.body)) request.body.clear();
  const session::Beside beside = app.beside(principal_of(request));
  std::expected<json::object, Response> body = co_await json_body(beside, request);
  if (!body) co_return std::move(body.error());
  Fields fields(std::move(*body));
  const std::optional<std::string> call = fields.text("call");
  if (std::optional<Response> refusal = fields.refusal()) co_return std::move(*refusal);
  if (call) {
    if (!app.running_calls().stop(id, *call))
      co_return refuse(kNotFound, "no such call runs in this session",
                       "it may have ended; without a call, all that run are asked to stop");
    co_return tell(app, "call_interrupted", id, request);
  }
  app.dispatcher().deny_waiting(id, "interrupt", "the session was interrupted");
  (void)app.engine().interrupt(id);  // it is there
  co_return tell(app, "session_interrupted", id, request);
}

Async<Response> make_dispatch_address(App& app, Request request) {
  std::expected<const SessionEntry*, Response> entry = co_await app.use_session(request);
  if (!entry) co_return std::move(entry.error());
  const std::string id = (*entry)->id();
  const std::string& asker = principal_of(request).name;
  const Result<std::string> token = app.tokens().add_dispatch(asker, id);
  if (!token) co_return refuse(kInternal, token.error());
  json::object answer;
  answer["path"] = "/v1/dispatch/" + percent_encode(called_by(asker, id)) + "?token=" + *token;
  co_return answer_json(answer, 201);
}

}  // namespace belljar::server
