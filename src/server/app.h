// App: what the server is, apart from HTTP: the engine, whose sessions there are, who may
// ask, what is heard and counted. A request passes admit() once its head is there, and
// answer() once it is whole.
#pragma once

#include <boost/json.hpp>
#include <map>
#include <memory>
#include <string>

#include "belljar/caller.h"
#include "plan/plan.h"
#include "policy/load.h"
#include "server/continuations.h"
#include "server/dispatch.h"
#include "server/event_hub.h"
#include "server/http.h"
#include "server/loop_meter.h"
#include "server/mcp_http.h"
#include "server/metrics.h"
#include "server/origin.h"
#include "server/owner_key.h"
#include "server/route.h"
#include "server/running_calls.h"
#include "server/session_book.h"
#include "server/skills.h"
#include "server/tokens.h"
#include "session/engine.h"
#include "tools/tool_table.h"

namespace belljar::server {

struct Setup {
  Loaded loaded;
  Caller caller;
  Tokens tokens;
  Names names;
  std::string skills_dir;
  DispatchSettings dispatch;
  Audit audit;
};

class App : public std::enable_shared_from_this<App> {
 public:
  static Result<std::shared_ptr<App>> make(Loop& loop, Setup setup);
  App(const App&) = delete;
  App& operator=(const App&) = delete;
  ~App();

  // ---- requests ----
  Admission admit(Request& request);  // to what a page of another origin may read, too
  // So much of its body is there. Why no more is taken in, if so.
  static std::optional<Response> hold(const Request& request, std::size_t bytes);
  Async<Response> answer(Request request);

  // ---- for the handlers ----
  Loop& loop() { return loop_; }
  session::Engine& engine() { return *engine_; }
  const Setup& setup() const { return setup_; }
  const Host& host() const { return host_; }
  Dispatcher& dispatcher() { return *dispatcher_; }
  Continuations& continuations() { return continuations_; }
  RunningCalls& running_calls() { return running_calls_; }
  McpHttp& mcp() { return *mcp_; }
  SkillStore& skills() { return *skills_; }
  const SkillStore& skills() const { return *skills_; }
  // One upload of a token's skills at a time, since versions are numbered; of others', beside it.
  session::Turns& skill_turns(const std::string& owner) {
    return skill_turns_.try_emplace(owner, loop_).first->second;
  }
  SessionBook& book() { return book_; }
  EventHub& events() { return events_; }
  // Who listens hears what became of a session, while it is there.
  void tell(std::string_view type, const std::string& session, boost::json::object data);
  // What is streamed to somebody ends when he may not ask any more.
  void watch_stream(const Principal& principal, const std::shared_ptr<EventStream>& stream);
  // For what grows with what somebody sent, or is sent.
  session::Beside beside(const Principal& principal) {
    return {engine_->aside(), loop_, principal.name};
  }
  Metrics& metrics() { return metrics_; }
  LoopMeter& meter() { return meter_; }
  Tokens& tokens() { return setup_.tokens; }
  // What the operator's policy comes to here.
  const boost::json::object& capabilities() const { return capabilities_; }
  const tools::Facts& facts() const { return facts_; }
  bool is_draining() const { return draining_; }
  bool has_ended() const { return ended_; }
  Gauges gauges() const;

  // A session of the book that is there, under its own policy even if it had been idle and
  // was ended; else the answer that says why not.
  Async<std::expected<const SessionEntry*, Response>> use_session(const Request& request);
  Async<std::expected<const SessionEntry*, Response>> use_session(std::string called,
                                                                  Principal principal);
  // Without a name one is made up.
  std::expected<const SessionEntry*, Response> open_session(SessionEntry entry);
  void close_session(const std::string& id);

  // ---- its life ----
  void set_http(const HttpServer* http) { http_ = http; }
  const OwnerKey& owner_key() const { return owner_key_; }
  // Of what was read again: tokens, names, limits of requests and sessions, permissions.
  void reload(Setup fresh);
  // No new requests; streams of events end.
  void drain();
  // Ends all sessions; calls that run are answered. The folder of what is left, if so.
  std::optional<std::string> end();

 private:
  App(Loop& loop, Setup setup);
  Admission let_in(Request& request, const PageRules& page);
  std::expected<Principal, Response> authenticate(const Request& request, const Route& route) const;
  std::expected<std::shared_ptr<Place>, Response> take_place(const Principal& principal);
  // It counts until it is sent: the handler's end is not the answer's.
  Response counted(Response response, const Request& request);
  void forget_ended(const std::string& owner);
  void tell_approval(const ApprovalEvent& event);
  // Sessions that were made by a call, as those of MCP are, are in the book like the others.
  SessionWatch watch_of_sessions();
  void forget_session(const std::string& id);
  void shut_out(const std::string& name);

  Loop& loop_;
  Setup setup_;
  Host host_;
  boost::json::object capabilities_;
  tools::Facts facts_;
  std::unique_ptr<session::Engine> engine_;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::unique_ptr<McpService> mcp_service_;
  std::unique_ptr<McpHttp> mcp_;
  Continuations continuations_;
  RunningCalls running_calls_;
  std::optional<SkillStore> skills_;
  std::map<std::string, session::Turns> skill_turns_;
  SessionBook book_;
  EventHub events_;
  std::vector<std::pair<std::string, std::weak_ptr<EventStream>>> streams_;  // and whose
  Metrics metrics_;
  LoopMeter meter_;
  std::shared_ptr<Places> requests_ = std::make_shared<Places>();
  std::shared_ptr<Places> listening_ = std::make_shared<Places>();  // streams that last
  const HttpServer* http_ = nullptr;
  OwnerKey owner_key_;
  bool draining_ = false;
  bool ended_ = false;
};

// The parameter of the request's route.
const std::string& parameter(const Request& request, std::string_view name);
const Principal& principal_of(const Request& request);

}  // namespace belljar::server
