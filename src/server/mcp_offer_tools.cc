#include <algorithm>

#include "base/json_size.h"
#include "base/printable.h"
#include "base/random.h"
#include "base/utf8.h"
#include "server/host_trouble.h"
#include "server/mcp_offer.h"
#include "server/secret.h"

namespace belljar::server {
namespace {

constexpr std::chrono::milliseconds kProgressEvery{100};
constexpr std::size_t kMaxProgress = 400;  // characters of output in one
constexpr std::size_t kMaxLog = std::size_t{256} << 10;
constexpr std::size_t kMaxFiles = 1000;
constexpr std::size_t kMostUnnamed = 4;
constexpr std::string_view kQuestion = "approval";
constexpr std::string_view kAgentKey = "belljar/agent";

std::int64_t now_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// The end of what was written, as far as a line of a status display goes.
std::string tail(std::string_view bytes) {
  while (bytes.ends_with('\n')) bytes.remove_suffix(1);
  if (bytes.size() > kMaxProgress) bytes.remove_prefix(bytes.size() - kMaxProgress);
  return repair_utf8(bytes);
}

// Output as progress: often enough to watch, and no more often.
struct Watcher {
  std::shared_ptr<McpExchange> exchange;
  Clock::time_point last;
  double bytes = 0;

  void hear(std::string_view chunk) {
    bytes += static_cast<double>(chunk.size());
    if (Clock::now() - last < kProgressEvery) return;
    last = Clock::now();
    exchange->progress(bytes, {}, tail(chunk));
  }
};

std::string question_of(const std::string& tool, const json::object& arguments) {
  const std::string shown = visible(json::serialize(arguments));
  constexpr std::size_t kMaxShown = std::size_t{32} << 10;
  if (shown.size() <= kMaxShown) return "May the model use " + tool + " with " + shown + "?";
  // What is not shown should not be approved by who does not know of it.
  const std::size_t rest = shown.size() - kMaxShown;
  return "May the model use " + tool + "? " + std::to_string(rest) +
         " bytes of its arguments are NOT shown here: " + repair_utf8(shown.substr(0, kMaxShown));
}

json::object approval_schema(bool has_commands) {
  json::array values{"once", "tool"};
  json::array titles{"Yes, this once", "Yes, this tool for the whole session"};
  if (has_commands) {
    values.emplace_back("same");
    titles.emplace_back("Yes, these very commands for the whole session");
  }
  values.emplace_back("deny");
  titles.emplace_back("No");
  json::object decision{{"type", "string"}, {"title", "Decision"}};
  decision["enum"] = std::move(values);
  decision["enumNames"] = std::move(titles);
  json::object message{{"type", "string"}, {"title", "A word to the model"}};
  json::object schema{{"type", "object"}};
  schema["properties"] = {{"decision", std::move(decision)}, {"message", std::move(message)}};
  schema["required"] = json::array{"decision"};
  return schema;
}

// What a person answered. Anything but a clear yes is a no.
Decision decision_of(const json::object& answer, bool has_commands) {
  Decision decision;
  decision.by = "elicitation";
  if (text_at(answer, "action") != "accept") return decision;
  const json::object* content = object_at(answer, "content");
  if (content == nullptr) return decision;
  decision.message = text_at(*content, "message");
  if (decision.message.size() > kMaxDecisionMessage)
    decision.message = repair_utf8(decision.message.substr(0, kMaxDecisionMessage - 3));
  const std::string said = text_at(*content, "decision");
  decision.approved = said == "once" || said == "tool" || (said == "same" && has_commands);
  if (said == "tool") decision.scope = Scope::tool;
  if (said == "same") decision.scope = Scope::same;
  return decision;
}

// Clients hold every answer against the schema, also that of a call that failed and has
// nothing to show but why.
json::object or_error(json::object schema) {
  json::object why{{"type", "string"}, {"description", "Why it failed, where it did."}};
  schema["properties"].as_object()["error_type"] = std::move(why);
  const json::value* required = schema.if_contains("required");
  if (required == nullptr) return schema;
  json::object whole{{"required", *required}};
  json::object failed{{"required", json::array{"error_type"}}};
  schema["anyOf"] = json::array{std::move(whole), std::move(failed)};
  schema.erase("required");
  return schema;
}

bool has_form_elicitation(const McpContext& context) {
  const json::object* elicitation = object_at(context.client, "elicitation");
  return elicitation != nullptr && (elicitation->empty() || elicitation->contains("form"));
}

}  // namespace

McpOffer::McpOffer(McpService& service, Dispatcher& dispatcher, OfferSettings settings)
    : service_(service),
      dispatcher_(dispatcher),
      settings_(std::move(settings)),
      facts_(settings_.facts),
      key_(random_hex(32)) {}

const tools::Facts& McpOffer::facts() {
  if (facts_) return *facts_;
  // Here and now: who does not know it beforehand has one client.
  const Result<session::Look> look = dispatcher_.engine().look();
  const Result<session::SessionView> view = look ? (*look)() : std::unexpected(look.error());
  facts_ = view ? facts_of(*view) : tools::Facts{};
  return *facts_;
}

json::object McpOffer::tool_json(const tools::Tool& tool) {
  json::object object{{"name", tool.name}, {"title", tool.title}};
  object["description"] = tools::describe(tool, facts());
  object["inputSchema"] = tool.input_schema;
  if (!tool.output_schema.empty()) object["outputSchema"] = or_error(tool.output_schema);
  const bool closed_world = !facts().network.empty() && facts().network.starts_with("none");
  object["annotations"] = {{"title", tool.title},
                           {"readOnlyHint", tool.read_only},
                           {"destructiveHint", tool.destructive},
                           {"openWorldHint", !closed_world && !tool.read_only}};
  return object;
}

void McpOffer::add_tools(json::array& into) {
  for (const tools::Tool& tool : tools::all_tools()) into.push_back(tool_json(tool));
}

json::object McpOffer::result_of(const ToolAnswer& answer, bool is_stateless) {
  const std::string name(name_in(answer.session));
  json::array content;
  content.push_back({{"type", "text"}, {"text", answer.text}});
  for (const Image& image : answer.images)
    content.push_back({{"type", "image"}, {"data", image.base64}, {"mimeType", image.mime}});
  for (const FileLink& file : answer.files)
    content.push_back({{"type", "resource_link"},
                       {"uri", file_uri(name, file.name)},
                       {"name", file.name},
                       {"mimeType", file.mime},
                       {"size", file.size}});
  json::object result;
  // Who keeps no connection has to name the session next time.
  if (is_stateless && !name.empty())
    content.push_back({{"type", "text"}, {"text", "session: " + name}});
  result["content"] = std::move(content);
  result["isError"] = answer.is_error;
  json::object structured = answer.structured;
  if (!name.empty()) structured["session"] = name;
  result["structuredContent"] = std::move(structured);
  return result;
}

std::string McpOffer::agent_of(const McpExchange& exchange) const {
  const json::object* meta = object_at(exchange.params(), "_meta");
  return meta != nullptr && settings_.agent.empty() ? text_at(*meta, kAgentKey) : settings_.agent;
}

Async<std::optional<McpResult>> McpOffer::call_tool(McpExchange& exchange, std::string name,
                                                    json::object arguments) {
  const auto is_named = [&](const tools::Tool& tool) { return tool.name == name; };
  if (std::ranges::none_of(tools::all_tools(), is_named)) co_return std::nullopt;
  ToolCall call;
  call.tool = name;
  call.arguments = std::move(arguments);
  call.principal = exchange.peer()->principal();
  call.agent = agent_of(exchange);
  call.cancel = exchange.cancel();
  // A connection has a session of its own, in either era. Where there is no connection, a call
  // without a name gets a new one.
  const bool is_unnamed = !call.arguments.contains("session");
  if (is_unnamed && exchange.peer()->lasts()) {
    if (exchange.peer()->session.empty() ||
        !dispatcher_.may_use(exchange.peer()->session, call.principal)) {
      const Result<std::string> made = dispatcher_.open(call.principal);
      if (!made) co_return mcp_fail(mcp_code::internal, told(made.error()));
      exchange.peer()->session = *made;
    }
    call.session = exchange.peer()->session;
  }
  const auto shared = std::make_shared<McpExchange>(exchange);
  const auto watcher = std::make_shared<Watcher>();
  watcher->exchange = shared;
  call.on_output = [watcher](OutputStream, std::string_view bytes) { watcher->hear(bytes); };
  const bool may_answer = has_form_elicitation(exchange.context()) &&
                          (!settings_.may_approve || settings_.may_approve(call.principal));
  // Nobody is asked about what is too long to be shown: the call says so.
  const bool is_short = weight(call.arguments, kMaxAskedAbout) <= kMaxAskedAbout;
  if (exchange.context().stateless && may_answer && is_short) {
    (void)co_await dispatcher_.find_folders(call);  // the call says what is wrong with it
    std::expected<std::optional<Decision>, McpResult> said = answered(exchange, call);
    if (!said) co_return said.error();
    call.decision = *said;
    if (!call.decision && dispatcher_.must_ask(call)) co_return input_required(exchange, call);
  } else {
    call.on_approval = [this, shared, may_answer](const Approval& approval) {
      if (!shared->context().stateless && may_answer) {
        ask_client(shared, dispatcher_, approval);
        return;
      }
      const std::string where = "waiting for a person to approve this call; " +
                                settings_.where_to_go + " (approval " + approval.id + ")";
      shared->progress(0, {}, where);
      shared->log(LogLevel::warning, json::value(where));
    };
  }
  const std::string principal = call.principal;
  ToolAnswer answer = co_await dispatcher_.call(std::move(call));
  // A client that hears neither progress nor logs has it from here.
  if (answer.error_type == "not_approved" && answer.text.ends_with(kTimeWasOver))
    answer.text += "; " + settings_.where_to_go;
  call = {};
  call.tool = name;
  call.principal = principal;
  call.session = answer.session;
  remember(call, answer);
  if (!exchange.peer()->lasts()) make_room(call, is_unnamed);
  std::size_t size = answer.text.size() + weight(answer.structured, session::Beside::kLittle);
  for (const Image& image : answer.images) size += image.base64.size();
  auto write = [answer = std::move(answer), is_stateless = exchange.context().stateless] {
    return result_of(answer, is_stateless);
  };
  const session::Beside beside = dispatcher_.beside(principal);
  json::object result = co_await beside.run(size, std::move(write));
  co_return McpResult(std::move(result));
}

// ---- approval by the client's person ------------------------------------------

void McpOffer::ask_client(const std::shared_ptr<McpExchange>& exchange, Dispatcher& dispatcher,
                          const Approval& approval) {
  auto ask = [](std::shared_ptr<McpExchange> about, Dispatcher& decides,
                Approval wanted) -> Async<void> {
    json::object params;
    params["message"] = question_of(wanted.tool, wanted.arguments);
    params["requestedSchema"] = approval_schema(!wanted.subjects.empty());
    const McpResult answer = co_await about->ask("elicitation/create", std::move(params));
    // A client that cannot ask after all leaves it to others, or to the time.
    if (!answer) co_return;
    (void)decides.approvals().decide(wanted.id, decision_of(*answer, !wanted.subjects.empty()));
  };
  begin(exchange->peer()->service().loop(), ask(exchange, dispatcher, approval));
}

// In the stateless era the question is the answer, and the call comes again with what the
// person said. What it must be about is signed, counts once and for a while; another session that
// has the name by then is another.
std::string McpOffer::state_for(const ToolCall& call, std::int64_t until,
                                const std::string& nonce) const {
  const std::uint64_t number = dispatcher_.engine().number(Dispatcher::session_of(call));
  const std::string about = call.principal + "\n" + call.tool + "\n" + call.agent + "\n" +
                            std::to_string(number) + "\n" + json::serialize(call.arguments) + "\n" +
                            nonce + "\n" + std::to_string(until);
  return std::to_string(until) + "." + nonce + "." + sign(key_, about);
}

McpResult McpOffer::input_required(const McpExchange&, const ToolCall& call) {
  const auto patience =
      std::chrono::duration_cast<std::chrono::seconds>(dispatcher_.settings().approval_patience);
  const std::string state = state_for(call, now_seconds() + patience.count(), random_hex(16));
  json::object request{{"method", "elicitation/create"}};
  request["params"] = {{"message", question_of(call.tool, call.arguments)},
                       {"requestedSchema", approval_schema(has_commands(call.tool))}};
  json::object result{{"resultType", "input_required"}};
  result["inputRequests"] = {{kQuestion, std::move(request)}};
  result["requestState"] = state;
  return result;
}

std::expected<std::optional<Decision>, McpResult> McpOffer::answered(const McpExchange& exchange,
                                                                     const ToolCall& call) {
  const json::object* responses = object_at(exchange.params(), "inputResponses");
  const std::string state = text_at(exchange.params(), "requestState");
  if (responses == nullptr && state.empty()) return std::nullopt;
  auto refuse = [](std::string why) {
    return std::unexpected(McpResult(mcp_fail(mcp_code::invalid_params, std::move(why))));
  };
  const std::size_t dot = state.find('.');
  const std::size_t second = state.find('.', dot == state.npos ? dot : dot + 1);
  if (second == state.npos || dot > 15) return refuse("requestState is none of ours");
  const std::string digits = state.substr(0, dot);
  if (digits.empty() || digits.find_first_not_of("0123456789") != digits.npos)
    return refuse("requestState is none of ours");
  const std::int64_t until = std::stoll(digits);
  const std::string nonce = state.substr(dot + 1, second - dot - 1);
  if (!same_secret(state, state_for(call, until, nonce)))
    return refuse(
        "requestState was changed, or belongs to another call or session; call again without it");
  const std::int64_t now = now_seconds();
  std::erase_if(used_, [&](const auto& entry) { return entry.second < now; });
  if (until < now) return refuse("the question has expired; call again without requestState");
  if (used_.contains(nonce)) return refuse("requestState was used already");
  const json::object* said = responses != nullptr ? object_at(*responses, kQuestion) : nullptr;
  if (said == nullptr) return std::nullopt;  // it is asked again
  used_[nonce] = until;
  return decision_of(*said, has_commands(call.tool));
}

// ---- what is told of a session ------------------------------------------------

void McpOffer::forget(McpPeer& peer) {
  if (peer.session.empty()) return;
  (void)dispatcher_.close(peer.session, peer.principal());  // it may have been ended already
}

// A client that keeps no connection and does not pass on the names that it is given would use up
// all sessions that it may have. What it has named once is its own to close.
void McpOffer::make_room(const ToolCall& call, bool is_unnamed) {
  std::deque<std::string>& unnamed = unnamed_[call.principal];
  std::erase(unnamed, call.session);
  if (is_unnamed && dispatcher_.engine().has(call.session)) unnamed.push_back(call.session);
  while (unnamed.size() > kMostUnnamed) {
    (void)dispatcher_.close(unnamed.front(), call.principal);  // it may have been ended already
    unnamed.pop_front();
  }
  if (unnamed.empty()) unnamed_.erase(call.principal);
}

const McpOffer::Told* McpOffer::told_of(const std::string& session) {
  const std::shared_ptr<void>* kept = dispatcher_.engine().kept_of(session);
  return kept != nullptr ? static_cast<const Told*>(kept->get()) : nullptr;
}

void McpOffer::remember(const ToolCall& call, const ToolAnswer& answer) {
  if (answer.session.empty()) return;
  if (call.tool == "session_close" && !answer.is_error) {
    service_.tell({.kind = McpChange::Kind::resources, .uri = {}, .principal = call.principal});
    return;
  }
  std::shared_ptr<void>* kept = dispatcher_.engine().kept_of(answer.session);
  // Another may have its name by now.
  if (kept == nullptr || dispatcher_.engine().number(answer.session) != answer.number) return;
  const bool is_new = *kept == nullptr;
  if (is_new) *kept = std::make_shared<Told>();
  Told& told = *static_cast<Told*>(kept->get());
  bool more = is_new;
  for (const FileLink& file : answer.files) {
    const bool known = told.files.contains(file.name);
    if (!known && told.files.size() >= kMaxFiles) continue;
    more = more || !known;
    told.files[file.name] = file;
  }
  std::string entry = "> " + call.tool + " " + json::serialize(answer.shown) + "\n";
  entry += std::string_view(answer.text).substr(0, kMaxLog);
  if (!entry.ends_with('\n')) entry += "\n";
  if (entry.size() > kMaxLog) entry = repair_utf8(entry.substr(0, kMaxLog)) + "…\n";
  told.log_bytes += entry.size();
  told.log.push_back(std::move(entry));
  while (told.log_bytes > kMaxLog && told.log.size() > 1) {
    told.log_bytes -= told.log.front().size();
    told.log.pop_front();
  }
  using Kind = McpChange::Kind;
  const std::string name(name_in(answer.session));
  if (more) service_.tell({.kind = Kind::resources, .uri = {}, .principal = call.principal});
  service_.tell(
      {.kind = Kind::resource, .uri = "session://" + name + "/log", .principal = call.principal});
  for (const FileLink& file : answer.files)
    service_.tell(
        {.kind = Kind::resource, .uri = file_uri(name, file.name), .principal = call.principal});
}

}  // namespace belljar::server
