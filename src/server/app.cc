#include "server/app.h"

#include <unistd.h>

#include "base/printable.h"
#include "plan/explain.h"
#include "server/fields.h"
#include "server/mcp_facts.h"
#include "server/mcp_offer.h"
#include "server/session_skills.h"

namespace belljar::server {
namespace {

constexpr std::string_view kWhichTokens =
    "`belljar serve` says at its start which file the tokens are in; the last word of a line is "
    "one, and SIGHUP makes it read the file again";
constexpr std::string_view kWhichKey =
    "also its owner needs one here; `belljar sessions` and `belljar approvals` find theirs "
    "themselves";

// Streams that last, of one token: as many as all kinds of them together may be. They are
// connections, also those that have ended and whose rest nobody reads.
constexpr std::size_t kMaxLasting = 128;

// One's own, and without saying whose: that is the token's.
Status check_name(const std::string& name) {
  return session::check_id(name.find('@') == name.npos ? name : std::string());
}

std::string_view bearer_token(const Request& request) {
  const std::string* header = request.header("authorization");
  if (header == nullptr) return {};
  const std::string_view text = *header;
  constexpr std::string_view kScheme = "bearer ";
  if (text.size() < kScheme.size()) return {};
  for (std::size_t i = 0; i < kScheme.size(); ++i)
    if (std::tolower(static_cast<unsigned char>(text[i])) != kScheme[i]) return {};
  return text.substr(kScheme.size());
}

}  // namespace

const std::string& parameter(const Request& request, std::string_view name) {
  return request.admitted->parameters.find(name)->second;
}

const Principal& principal_of(const Request& request) { return request.admitted->principal; }

App::App(Loop& loop, Setup setup)
    : loop_(loop), setup_(std::move(setup)), continuations_(loop), events_(loop, book_) {}

// Clients that are still there end sessions as they go, when the book has gone before them.
App::~App() {
  if (dispatcher_ != nullptr) dispatcher_->watch_sessions({});
}

Result<std::shared_ptr<App>> App::make(Loop& loop, Setup setup) {
  std::shared_ptr<App> app(new App(loop, std::move(setup)));
  const Loaded& loaded = app->setup_.loaded;
  if (loaded.policy.mode == Mode::off)
    return fail("a server does not run without a sandbox", 0, "take --sandbox=off away");
  app->skills_ = TRY(SkillStore::open(app->setup_.skills_dir));
  app->host_ = probe_host(app->setup_.caller);
  Policy policy = session::shared_by_sessions(loaded.policy, loaded.session);
  const Plan plan = TRY(resolve(policy, app->host_, app->setup_.caller, Purpose::explain));
  // Better now than at the first call.
  TRY(refuse_lost_promises(plan));
  app->capabilities_ = explain_json(plan);
  app->facts_ = facts_of(session::view_of(plan));
  app->engine_ = TRY(
      session::Engine::make(loop, loaded.policy, app->setup_.caller, loaded.session, loaded.bound));
  app->dispatcher_ = std::make_unique<Dispatcher>(
      loop, *app->engine_, std::move(app->setup_.dispatch), std::move(app->setup_.audit));
  app->dispatcher_->watch_sessions(app->watch_of_sessions());
  app->engine_->know_owners([](const std::string& id) { return std::string(owner_in(id)); });
  app->mcp_service_ = std::make_unique<McpService>(loop, mcp_facts());
  app->mcp_service_->work_beside(app->engine_->aside());
  app->mcp_service_->add(std::make_shared<McpOffer>(
      *app->mcp_service_, *app->dispatcher_,
      OfferSettings{.agent = {},
                    .where_to_go = std::string(kHowToApprove),
                    .may_approve =
                        [self = app.get()](const std::string& name) {
                          return self->setup_.tokens.may(name, Right::approve);
                        },
                    .facts = app->facts_}));
  app->mcp_ = std::make_unique<McpHttp>(*app->mcp_service_, loaded.session.idle);
  App* self = app.get();  // which has the approvals
  app->dispatcher_->approvals().subscribe(
      [self](const ApprovalEvent& event) { self->tell_approval(event); });
  return app;
}

void App::tell(std::string_view type, const std::string& session, json::object data) {
  if (book_.find_any(session) != nullptr) events_.publish(type, session, std::move(data));
}

void App::tell_approval(const ApprovalEvent& event) {
  const Approval& approval = event.approval;
  json::object data = approval.to_json("");
  if (event.kind == ApprovalEvent::Kind::required) {
    tell("agentic_tool_approval_required", approval.session, std::move(data));
    return;
  }
  data["decision"] = event.decision.approved ? "approve" : "deny";
  data["by"] = event.decision.by;
  tell("approval_decided", approval.session, std::move(data));
}

// ---- letting in ---------------------------------------------------------------

std::expected<Principal, Response> App::authenticate(const Request& request,
                                                     const Route& route) const {
  if (route.right == Right::none) return Principal{.name = "", .rights = {}, .session = {}};
  std::string token(bearer_token(request));
  // An address is written into logs and lists: it carries no token that can do more.
  const std::optional<std::string> in_address = query_value(request.query, "token");
  const bool by_address = token.empty() && route.right == Right::dispatch && in_address;
  if (by_address) token = *in_address;
  // Two layers: what the kernel says of the peer, and a secret that only the owner can read.
  const Peer& peer = request.peer;
  if (peer.may_be_owner && !by_address && owner_key_.is(token))
    return Principal{
        .name = "uid:" + std::to_string(peer.uid), .rights = {Right::admin}, .session = {}};
  if (!token.empty()) {
    const Principal* found = setup_.tokens.find(token);
    if (found == nullptr)
      return std::unexpected(refuse(kUnauthorized, "this token is not known", kWhichTokens));
    if (by_address && found->rights != std::set{Right::dispatch})
      return std::unexpected(refuse(kUnauthorized, "only a token for dispatch may be in an address",
                                    "POST /v1/sessions/{id}/dispatch makes one"));
    return *found;
  }
  return std::unexpected(
      refuse(kUnauthorized, "a token is needed", peer.is_local_socket ? kWhichKey : ""));
}

std::expected<std::shared_ptr<Place>, Response> App::take_place(const Principal& principal) {
  const ServerSettings& limits = setup_.loaded.server;
  if (requests_->count(principal.name) >= limits.max_requests)
    return std::unexpected(refuse(kTooMany, "this token has too many requests running",
                                  "wait for one, or raise max_requests in [server]"));
  if (requests_->total >= limits.max_requests_total)
    return std::unexpected(refuse(kUnavailable, "the server has too many requests running",
                                  "wait, or raise max_requests_total in [server]"));
  return std::make_shared<Place>(requests_, principal.name);
}

Admission App::admit(Request& request) {
  if (std::optional<Response> foreign = refuse_foreign(request, setup_.names))
    return std::unexpected(std::move(*foreign));
  const PageRules page = PageRules::of(request, setup_.names);
  Admission admission = let_in(request, page);
  if (!admission) page.add_to(admission.error());
  return admission;
}

Admission App::let_in(Request& request, const PageRules& page) {
  Match matched = match(routes(), request.method, request.path);
  if (matched.route == nullptr && matched.allowed.empty())
    return std::unexpected(refuse(kNotFound, "there is nothing here", "see /openapi.json"));
  if (!page.origin.empty() && PageRules::asks_before(request))
    return std::unexpected(page.answer_before(request, matched.allowed));
  if (matched.route == nullptr) {
    Response refusal =
        refuse(kMethodNotAllowed, printable(request.method) + " is not possible here",
               "use " + matched.allowed + "; /openapi.json lists what there is");
    refusal.headers.emplace_back("Allow", matched.allowed);
    return std::unexpected(std::move(refusal));
  }
  const Route& route = *matched.route;
  std::expected<Principal, Response> principal = authenticate(request, route);
  if (!principal) return std::unexpected(std::move(principal.error()));
  if (!principal->may(route.right))
    return std::unexpected(refuse(kForbidden, "this token may not do that",
                                  "it needs the scope " + std::string(name(route.right))));
  if (draining_ && route.right != Right::none)
    return std::unexpected(refuse(kUnavailable, "the server is stopping", kStartsAgain));
  auto admitted = std::make_shared<Admitted>();
  admitted->route = &route;
  admitted->parameters = std::move(matched.parameters);
  admitted->page = page;
  // Health must answer however much else is going on.
  if (route.right != Right::none) {
    std::expected<std::shared_ptr<Place>, Response> place = take_place(*principal);
    if (!place) return std::unexpected(std::move(place.error()));
    admitted->place = std::move(*place);
  }
  admitted->principal = std::move(*principal);
  request.admitted = std::move(admitted);
  return route.max_body;
}

std::optional<Response> App::hold(const Request& request, std::size_t bytes) {
  const std::shared_ptr<Place>& place = request.admitted->place;
  if (place == nullptr || place->hold(bytes)) return std::nullopt;
  return refuse(kTooMany, "bodies and answers of this token take 256 MiB, the most allowed",
                "wait until those that are on their way have been answered and read");
}

Response App::counted(Response response, const Request& request) {
  if (!response.listens) {
    response.place = request.admitted;
    if (const auto* text = std::get_if<std::string>(&response.body))
      if (std::optional<Response> refusal = hold(request, text->size())) return *std::move(refusal);
    return response;
  }
  const std::string& name = principal_of(request).name;
  if (listening_->count(name) >= kMaxLasting) {
    std::get<std::shared_ptr<EventStream>>(response.body)->abandon();
    return refuse(kTooMany, "this token has too many event streams open", "read or close some");
  }
  response.place = std::make_shared<Place>(listening_, name);
  return response;
}

Async<Response> App::answer(Request request) {
  const std::shared_ptr<App> keep = shared_from_this();
  const Route& route = *request.admitted->route;
  meter_.note(route.pattern);
  if (has_ended()) co_return refuse(kUnavailable, "the server has stopped", kStartsAgain);
  if (route.takes.empty() && !is_no_body(request.body))
    co_return refuse(kBadRequest, "this request takes no body", "leave the body out");
  const Clock::time_point began = Clock::now();
  Request asked;  // what is left of it, when the handler has had the rest
  asked.admitted = request.admitted;
  Response response = co_await route.handler(*this, std::move(request));
  meter_.note(route.pattern);
  response = counted(std::move(response), asked);
  asked.admitted->page.add_to(response);
  const auto time = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - began);
  metrics_.count_request(route.pattern, response.status, time);
  co_return response;
}

// ---- sessions -----------------------------------------------------------------

Async<std::expected<const SessionEntry*, Response>> App::use_session(std::string called,
                                                                     Principal principal) {
  const SessionEntry* entry = book_.find(called, principal);
  if (entry == nullptr)
    co_return std::unexpected(refuse(kNotFound, "there is no such session", kWhichSessions));
  // The engine would make a missing one again, but under the operator's policy.
  const std::string id = entry->id();
  if (engine_->has(id)) co_return entry;
  dispatcher_->approvals().forget(id);  // what was approved was for the one that ended
  const Result<std::string> again = engine_->open(id, entry->policy);
  if (!again) co_return std::unexpected(refuse(kUnavailable, again.error()));
  const Status linked = co_await link_skills(*this, *entry);
  if (has_ended())
    co_return std::unexpected(refuse(kUnavailable, "the server has stopped", kStartsAgain));
  if (!linked) co_return std::unexpected(refuse(kSessionFailed, linked.error()));
  entry = book_.find(id, principal);  // it may have been closed meanwhile
  if (entry == nullptr)
    co_return std::unexpected(refuse(kNotFound, "there is no such session", kWhichSessions));
  co_return entry;
}

Async<std::expected<const SessionEntry*, Response>> App::use_session(const Request& request) {
  return use_session(parameter(request, "id"), principal_of(request));
}

std::expected<const SessionEntry*, Response> App::open_session(SessionEntry entry) {
  const std::size_t most = setup_.loaded.server.max_sessions_per_token;
  if (book_.count(entry.owner) >= most) forget_ended(entry.owner);
  if (book_.count(entry.owner) >= most)
    return std::unexpected(
        refuse(kTooMany, "this token has " + std::to_string(most) + " sessions, the most allowed",
               "DELETE one, or raise max_sessions_per_token in [server]"));
  if (entry.name.empty()) entry.name = session::fresh_id();
  if (const Status fits = check_name(entry.name); !fits)
    return std::unexpected(refuse(kBadRequest, fits.error()));
  if (book_.find_any(entry.id()) != nullptr)
    return std::unexpected(refuse(kConflict, "there is a session " + entry.name + " already",
                                  "choose another id, or leave it out"));
  if (engine_->count() >= setup_.loaded.session.max_sessions)
    return std::unexpected(
        refuse(kUnavailable, "there are too many sessions", "raise max_sessions in [session]"));
  Result<std::string> id = engine_->open(entry.id(), entry.policy);
  if (!id) return std::unexpected(refuse(kSessionFailed, id.error()));
  const std::string owner = entry.owner;
  book_.add(std::move(entry));
  (void)dispatcher_->claim(*id, owner);  // nobody else's: the book says so
  events_.publish("session_created", *id, {});
  return book_.find_any(*id);
}

SessionWatch App::watch_of_sessions() {
  SessionWatch watch;
  watch.may_begin = [this](const std::string& id, const std::string& owner) -> Status {
    const SessionEntry* known = book_.find_any(id);
    const std::size_t most = setup_.loaded.server.max_sessions_per_token;
    if (known == nullptr && book_.count(owner) >= most) forget_ended(owner);
    if (known == nullptr && book_.count(owner) >= most)
      return fail("this token has " + std::to_string(most) + " sessions, the most allowed", 0,
                  "close one");
    return {};
  };
  watch.begun = [this](const std::string& id, const std::string& owner) {
    if (book_.find_any(id) != nullptr) return;
    SessionEntry entry;
    entry.name = name_in(id);
    entry.owner = owner;
    entry.policy = setup_.loaded.policy;
    entry.profile = entry.policy.profile;
    book_.add(std::move(entry));
    events_.publish("session_created", id, {});
  };
  watch.ended = [this](const std::string& id) { forget_session(id); };
  watch.policy_of = [this](const std::string& id) -> std::optional<Policy> {
    const SessionEntry* known = book_.find_any(id);
    return known != nullptr ? std::optional(known->policy) : std::nullopt;
  };
  return watch;
}

void App::forget_session(const std::string& id) {
  if (book_.find_any(id) == nullptr) return;
  events_.publish("session_closed", id, {});
  continuations_.forget(id);
  book_.remove(id);
  setup_.tokens.remove_dispatch(id);
}

// Sessions that had been idle are kept in mind for their next call, until room is needed.
void App::forget_ended(const std::string& owner) {
  Principal everybody{.name = "", .rights = {Right::admin}, .session = {}};
  for (const SessionEntry* entry : book_.all(everybody))
    if (entry->owner == owner && !engine_->has(entry->id())) close_session(entry->id());
}

void App::close_session(const std::string& id) {
  const SessionEntry* entry = book_.find_any(id);
  // It may have been idle and gone.
  if (entry != nullptr) (void)dispatcher_->close(id, std::string(entry->owner));
  if (engine_->has(id)) (void)engine_->close(id);
  forget_session(id);
}

Gauges App::gauges() const {
  return {.connections = http_ != nullptr ? http_->connections() : 0,
          .requests = requests_->total,
          .sessions = engine_->count(),
          .event_listeners = events_.listeners(),
          .refused_connections = http_ != nullptr ? http_->refused_connections() : 0,
          .audit_lost = dispatcher_->audit().lost()};
}

// ---- its life -----------------------------------------------------------------

void App::watch_stream(const Principal& principal, const std::shared_ptr<EventStream>& stream) {
  std::erase_if(streams_, [](const auto& entry) {
    const std::shared_ptr<EventStream> there = entry.second.lock();
    return there == nullptr || there->ended();
  });
  streams_.emplace_back(principal.name, stream);
}

// Who has a token again can come back; what was open was opened with the one before.
void App::shut_out(const std::string& name) {
  events_.close(name);
  dispatcher_->approvals().deny_those(
      [&](const Approval& one) { return one.principal == name || one.by == name; }, "token",
      "the token is no longer valid");
  mcp_->close(name);
  for (const auto& [owner, weak] : streams_)
    if (const std::shared_ptr<EventStream> stream = weak.lock(); stream != nullptr)
      if (owner == name) stream->finish();
}

void App::reload(Setup fresh) {
  for (const std::string& name : setup_.tokens.replace(std::move(fresh.tokens))) shut_out(name);
  setup_.names = std::move(fresh.names);
  // What it listens on and where its files are stays; what is only looked at when it is
  // needed is the new one from now on.
  setup_.loaded.server = std::move(fresh.loaded.server);
  dispatcher_->set_permissions(std::move(fresh.dispatch.floors), std::move(fresh.dispatch.agents));
  dispatcher_->set_approval_patience(fresh.dispatch.approval_patience);
}

void App::drain() {
  draining_ = true;
  // Before clients are hung up on: a call that waits for a person was denied, not cancelled.
  dispatcher_->approvals().close("the server is stopping");
  events_.close();
  mcp_->close();
}

std::optional<std::string> App::end() {
  // It stays: calls that come to their end later still ask it.
  if (std::exchange(ended_, true)) return std::nullopt;
  return engine_->end(setup_.loaded.server.removal_timeout);
}

}  // namespace belljar::server
