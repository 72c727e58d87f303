#include "server/dispatch.h"

#include <algorithm>
#include <filesystem>

#include "base/commas.h"
#include "base/json_field.h"
#include "base/json_size.h"
#include "base/printable.h"
#include "policy/keys.h"
#include "server/host_trouble.h"
#include "server/limits.h"
#include "server/owned_names.h"
#include "server/processes.h"
#include "tools/arguments.h"
#include "tools/file_tools.h"
#include "tools/glob.h"
#include "tools/tool_table.h"

namespace belljar::server {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxRemembered = 10'000;  // sessions

void add_texts(const json::value* value, std::vector<std::string>& into) {
  if (value == nullptr) return;
  if (value->is_string()) into.emplace_back(value->get_string());
  if (const json::array* list = value->if_array())
    for (const json::value& one : *list)
      if (one.is_string()) into.emplace_back(one.get_string());
}

// As JSON writes it, which is how people are shown it: up to six times as long.
std::size_t length_of(std::string_view text) {
  std::size_t sum = 2;
  for (const char c : text)
    sum += static_cast<unsigned char>(c) < ' ' ? 6U : c == '"' || c == '\\' ? 2U : 1U;
  return sum;
}

// The texts in it, which are what can be long.
std::size_t length_of(const json::value& value) {
  if (value.is_string()) return length_of(std::string_view(value.get_string()));
  std::size_t sum = 0;
  if (const json::array* list = value.if_array())
    for (const json::value& one : *list) sum += length_of(one);
  if (const json::object* object = value.if_object())
    for (const json::key_value_pair& one : *object)
      sum += length_of(std::string_view(one.key())) + length_of(one.value());
  return sum;
}

// `./a`, `b/../a` and `a/.` are a: else a pattern about a would not be about them.
std::string tidied(const std::string& path) {
  std::string text = std::filesystem::path(path).lexically_normal();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

// Without the folder; empty if it is not in it.
std::string below(const std::string& path, const std::string& folder) {
  const std::string above = folder == "/" ? folder : folder + "/";
  return !folder.empty() && path.starts_with(above) ? path.substr(above.size()) : std::string();
}

// The names of the file that a tool will open: the whole one; in the workdir, or beside it if it
// was given so, the one from there; in the home, the one with `~`. However it was written, it has
// the same: else there would be a way to write it that no pattern is about.
std::vector<std::string> names_of(const std::string& path, const std::string& workdir,
                                  const std::string& home) {
  const std::string whole = tools::absolute_path(path, workdir, home);
  std::vector<std::string> names{whole};
  const bool is_relative = !path.starts_with('/') && !tools::is_at_home(path);
  const std::string from_home = below(whole, home);
  std::string from_workdir = whole == workdir ? "." : below(whole, workdir);
  if (from_workdir.empty() && is_relative) from_workdir = tidied(path);
  if (!from_home.empty()) names.push_back("~/" + from_home);
  if (!from_workdir.empty()) names.push_back(std::move(from_workdir));
  return names;
}

bool has_variables(const json::object& arguments) {
  const json::value* variables = arguments.if_contains("environment");
  return variables != nullptr && variables->is_object() && !variables->get_object().empty();
}

// Words are told apart, and it is that program only in that folder and with those variables.
std::string exact_program(const json::object& arguments) {
  json::array parts;
  for (const std::string_view name : {"arguments", "folder", "environment", "terminal"}) {
    const json::value* part = arguments.if_contains(name);
    parts.push_back(part != nullptr ? *part : json::value());
  }
  return json::serialize(parts);
}

Permission said_by(std::span<const Permissions> all, const std::string& tool,
                   std::span<const PermissionSubject> about) {
  const Permission found = strictest(all, tool, about);
  // Or who may not use the shell would start one.
  return tool == "process_start" ? std::max(found, strictest(all, "shell", about)) : found;
}

// Who may say so, since an agent is no secret: it is a file beside the server's settings.
std::string no_such_agent(const std::string& agent,
                          const std::map<std::string, Permissions>& known) {
  std::string text = "there is no agent " + printable(agent) + ", so it may do nothing";
  if (known.empty()) return text + "; this server has none";
  std::vector<std::string_view> names;
  for (const auto& one : known) names.push_back(one.first);
  const std::string_view near = nearest(agent, names);
  if (!near.empty()) return text + "; did you mean " + std::string(near) + "?";
  return text + "; there are " + with_commas(names);
}

}  // namespace

ToolAnswer tool_error(std::string type, std::string text) {
  ToolAnswer answer;
  answer.is_error = true;
  answer.error_type = std::move(type);
  answer.text = std::move(text);
  return answer;
}

ToolAnswer failure(const Error& error) {
  ToolAnswer answer = tool_error("failed", told(error));
  if (is_of_the_host(error)) answer.error_type = "host_failed";
  answer.cause = error.message();
  return answer;
}

std::vector<PermissionSubject> subjects(std::string_view tool, const json::object& arguments) {
  std::vector<std::string> texts;
  if (tool == "shell") {
    add_texts(arguments.if_contains("commands"), texts);
  } else if (tool == "process_start") {
    std::vector<std::string> words;
    add_texts(arguments.if_contains("arguments"), words);
    std::string line;
    for (const std::string& word : words) line += (line.empty() ? "" : " ") + word;
    texts.push_back(std::move(line));
  } else {
    texts.push_back(text_of(arguments, tool == "python" ? "code" : "path"));
    std::string folder = tool == "glob" ? tools::folder_in(text_of(arguments, "pattern")) : "";
    if (!folder.empty()) texts.back() = std::move(folder);
  }
  if (texts.empty()) texts.emplace_back();
  std::vector<PermissionSubject> found;
  for (std::string& text : texts) {
    const bool compound = tool == "shell" ? is_compound_command(text)
                                          : tool == "process_start" && has_variables(arguments);
    found.push_back({.text = std::move(text), .compound = compound});
  }
  return found;
}

bool has_commands(std::string_view tool) { return tool == "shell" || tool == "process_start"; }

Dispatcher::Dispatcher(Loop& loop, session::Engine& engine, DispatchSettings settings, Audit audit)
    : loop_(loop),
      engine_(engine),
      settings_(std::move(settings)),
      approvals_(loop, settings_.approval_patience),
      audit_(std::move(audit)),
      processes_(std::make_unique<Processes>(engine)) {}

Dispatcher::~Dispatcher() = default;

// ---- whose session ------------------------------------------------------------

bool Dispatcher::may_use(const std::string& session, const std::string& principal) const {
  return known_.contains(session) && owner_in(session) == principal;
}

std::string Dispatcher::session_of(const ToolCall& call) {
  const std::string named = text_of(call.arguments, "session");
  return named.empty() ? call.session : whole_name_for(call.principal, named);
}

Status Dispatcher::claim(const std::string& session, const std::string& principal) {
  if (may_use(session, principal)) return {};
  if (whole_name(name_in(session), principal) != session) return fail("there is no such session");
  TRY(session::check_id(session));
  if (watch_.may_begin) TRY(watch_.may_begin(session, principal));
  begun(session, principal);
  return {};
}

void Dispatcher::begun(const std::string& session, const std::string& principal) {
  forget_gone();
  known_.insert(session);
  if (watch_.begun) watch_.begun(session, principal);
}

// Sessions that were idle and have ended are remembered for their next call; but not for ever.
void Dispatcher::forget_gone() {
  if (known_.size() < kMaxRemembered) return;
  std::erase_if(known_, [&](const std::string& session) { return !engine_.has(session); });
  std::erase_if(rounds_, [&](const auto& round) { return !known_.contains(round.first); });
}

Result<std::string> Dispatcher::open(const std::string& principal, std::optional<Policy> policy) {
  const std::string id = whole_name(session::fresh_id(), principal);
  if (watch_.may_begin) TRY(watch_.may_begin(id, principal));
  std::string made = TRY(engine_.open(id, std::move(policy)));
  begun(made, principal);
  return made;
}

Status Dispatcher::close(const std::string& session, const std::string& principal) {
  if (!may_use(session, principal)) return fail("there is no such session");
  processes_->forget(session);
  deny_waiting(session, "close", "the session was closed");
  approvals_.forget(session);
  rounds_.erase(session);
  known_.erase(session);
  const Status closed = engine_.close(session);
  if (watch_.ended) watch_.ended(session);
  return closed;
}

std::vector<SessionInfo> Dispatcher::sessions(const std::string& principal) {
  return engine_.list([&](const std::string& id) { return may_use(id, principal); });
}

// ---- permission ---------------------------------------------------------------

Permission Dispatcher::permission(const ToolCall& call) const {
  std::vector<PermissionSubject> about = subjects(call.tool, call.arguments);
  if (tools::is_file_tool(call.tool)) {
    for (PermissionSubject& subject : about) {
      // Where a search is given no folder it begins in the workdir.
      subject.also = names_of(subject.text.empty() ? "." : subject.text, call.workdir, call.home);
      if (!subject.text.empty()) subject.text = subject.also.front();
    }
  }
  const Permission found = said_by(settings_.floors, call.tool, about);
  if (call.agent.empty()) return found;
  const auto agent = settings_.agents.find(call.agent);
  if (agent == settings_.agents.end()) return Permission::deny;
  return std::max(found, said_by({&agent->second, 1}, call.tool, about));
}

// Whether it matters how a file is called.
bool Dispatcher::has_patterns(const ToolCall& call) const {
  auto has_one = [&](const Permissions& permissions) {
    const auto rules = permissions.tools.find(call.tool);
    return rules != permissions.tools.end() &&
           std::ranges::any_of(rules->second, [](const auto& rule) { return rule.pattern != "*"; });
  };
  const auto agent = settings_.agents.find(call.agent);
  return std::ranges::any_of(settings_.floors, has_one) ||
         (agent != settings_.agents.end() && has_one(agent->second));
}

Async<Status> Dispatcher::find_folders(ToolCall& call) {
  if (!tools::is_file_tool(call.tool) || !has_patterns(call)) co_return Status();
  std::string id = session_of(call);
  // One that is not there will be as those are that nobody asked anything of.
  if (!engine_.has(id) || !may_use(id, call.principal)) id.clear();
  std::string owner = call.principal;
  const Result<session::SessionView> view = co_await engine_.view(std::move(id), std::move(owner));
  if (!view) co_return std::unexpected(view.error());
  call.workdir = tools::absolute_path(view->workdir, "/", "");
  if (!view->home.empty()) call.home = tools::absolute_path(view->home, "/", "");
  co_return Status();
}

// Nobody was ever asked about what is too long to be asked about: only a yes to all is one to it.
bool Dispatcher::is_approved(const ToolCall& call, std::size_t length) const {
  if (length > kMaxAskedAbout) return approvals_.remembers_all(call.session, call.tool);
  return approvals_.remembered(approval_of(call));
}

Approval Dispatcher::approval_of(const ToolCall& call) const {
  Approval approval;
  approval.session = call.session;
  approval.principal = call.principal;
  approval.by = call.by.empty() ? call.principal : call.by;
  approval.agent = call.agent;
  const auto round = rounds_.find(call.session);
  approval.round = round != rounds_.end() ? round->second : 0;
  approval.tool = call.tool;
  const tools::Tool* tool = tools::find_tool(call.tool);
  approval.label = tool != nullptr ? std::string(tool->title) : call.tool;
  approval.arguments = call.arguments;
  if (has_commands(call.tool))
    for (PermissionSubject& subject : subjects(call.tool, call.arguments))
      approval.subjects.push_back(std::move(subject.text));
  if (call.tool == "process_start") {
    approval.exact = exact_program(call.arguments);
    approval.altered = has_variables(call.arguments) || !text_of(call.arguments, "folder").empty();
  }
  return approval;
}

bool Dispatcher::must_ask(const ToolCall& call) const {
  // What does not fit is refused, however long it is.
  const tools::Tool* tool = tools::find_tool(call.tool);
  if (tool == nullptr || !tools::check_arguments(*tool, call.arguments)) return false;
  Approval wanted = approval_of(call);
  wanted.session = session_of(call);
  return permission(call) == Permission::ask && !approvals_.remembered(wanted);
}

// What a person says, or has said already. nullopt: it was cancelled.
Async<std::optional<Decision>> Dispatcher::decide(const ToolCall& call, Approval wanted) {
  if (!call.decision)
    co_return co_await approvals_.ask(std::move(wanted), call.on_approval, call.cancel);
  approvals_.remember(wanted, *call.decision);
  co_return call.decision;
}

// ---- a call -------------------------------------------------------------------

json::object Dispatcher::audit_event(std::string_view event, const ToolCall& call) {
  const bool is_anothers = !call.by.empty() && call.by != call.principal;
  json::object object{{"event", event}};
  object["principal"] = is_anothers ? call.by : call.principal;
  object["session"] = name_in(call.session);
  if (is_anothers) object["owner"] = call.principal;
  object["tool"] = call.tool;
  return object;
}

// Arguments may have 16 MiB, and each of these goes through all of them.
Async<Dispatcher::Looked> Dispatcher::look_at(ToolCall& call) {
  auto look = [](const std::string& tool, const json::object& arguments, const Mask& mask) {
    Looked looked;
    const tools::Tool* known = tools::find_tool(tool);
    const tools::Status fits =
        known != nullptr ? tools::check_arguments(*known, arguments) : tools::Status();
    if (!fits) looked.misfit = fits.error().message();
    looked.shown = mask.arguments(arguments);
    looked.length = length_of(arguments);
    return looked;
  };
  const session::Beside beside = this->beside(call.principal);
  const std::size_t bytes = weight(call.arguments, session::Beside::kLittle);
  if (bytes <= session::Beside::kLittle) co_return look(call.tool, call.arguments, audit_.mask());
  // All by value: what is beside the loop may outlast us.
  std::vector<Permissions> rules = settings_.floors;
  const auto agent = settings_.agents.find(call.agent);
  if (agent != settings_.agents.end()) rules.push_back(agent->second);
  const bool is_nobody = !call.agent.empty() && agent == settings_.agents.end();
  auto work = [look, tool = call.tool, arguments = std::move(call.arguments), mask = audit_.mask(),
               rules = std::move(rules), is_nobody]() mutable {
    Looked looked = look(tool, arguments, mask);
    // A path is short, and which file it is is not known yet.
    if (looked.misfit.empty() && !tools::is_file_tool(tool))
      looked.permission =
          is_nobody ? Permission::deny : said_by(rules, tool, subjects(tool, arguments));
    return std::make_pair(std::move(arguments), std::move(looked));
  };
  auto done = co_await beside.run(bytes, std::move(work));
  call.arguments = std::move(done.first);
  co_return std::move(done.second);
}

Async<ToolAnswer> Dispatcher::call(ToolCall call) {
  const Clock::time_point began = Clock::now();
  Looked looked = co_await look_at(call);
  ToolAnswer answer = co_await judge(call, looked);
  answer.session = call.session;
  answer.number = call.number;
  if (answer.is_error) answer.structured["error_type"] = answer.error_type;
  json::object event = audit_event("call", call);
  event["arguments"] = looked.shown;
  event["outcome"] = answer.is_error ? answer.error_type : "success";
  event["ms"] = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began).count();
  if (!call.agent.empty()) event["agent"] = call.agent;
  if (answer.is_error) {
    const json::value said(answer.cause.empty() ? answer.text : answer.cause);
    event["message"] = audit_.mask().arguments(said);
  }
  audit_.write(std::move(event));
  answer.shown = std::move(looked.shown);
  co_return answer;
}

// From here on the call is for this very session.
Status Dispatcher::find_session(ToolCall& call) {
  const bool needs_it = !call.tool.starts_with("session_");
  if (needs_it && !engine_.has(call.session)) {
    if (!call.may_open) return fail("the session was closed");
    approvals_.forget(call.session);  // what was approved was for the one that ended
    TRY(engine_.open(call.session,
                     watch_.policy_of ? watch_.policy_of(call.session) : std::optional<Policy>()));
  }
  call.number = engine_.number(call.session);
  return {};
}

// Says what is wrong with the session it is for.
std::optional<ToolAnswer> Dispatcher::take_session(ToolCall& call) {
  call.session = session_of(call);
  if (call.session.empty() && call.tool == "session_list") return std::nullopt;
  if (call.session.empty()) {
    Result<std::string> made = open(call.principal);
    if (!made) return failure(made.error());
    call.session = *std::move(made);
  }
  const Status mine = claim(call.session, call.principal);
  if (!mine) return tool_error("not_found", mine.error().message());
  const Status there = find_session(call);
  if (!there) return failure(there.error());
  ++rounds_[call.session];
  return std::nullopt;
}

Async<ToolAnswer> Dispatcher::judge(ToolCall& call, const Looked& looked) {
  if (tools::find_tool(call.tool) == nullptr)
    co_return tool_error("unknown_tool", "there is no tool " + call.tool);
  if (!looked.misfit.empty()) co_return tool_error("invalid_arguments", looked.misfit);
  if (std::optional<ToolAnswer> wrong = take_session(call)) co_return *std::move(wrong);
  const Status found = co_await find_folders(call);
  if (!found) co_return failure(found.error());
  if (is_closed(call)) co_return tool_error("failed", "the session was closed");

  const Permission permitted = looked.permission ? *looked.permission : permission(call);
  json::object event = audit_event("decision", call);
  if (permitted == Permission::deny) {
    event["decision"] = "denied";
    event["by"] = "permissions";
    audit_.write(std::move(event));
    if (!call.agent.empty() && !settings_.agents.contains(call.agent))
      co_return tool_error("denied", no_such_agent(call.agent, settings_.agents));
    co_return tool_error("denied", "the permissions of this server deny " + call.tool +
                                       " with these arguments; do not try it in another way");
  }
  if (permitted == Permission::ask && !is_approved(call, looked.length)) {
    if (looked.length > kMaxAskedAbout)
      co_return tool_error("denied",
                           "a person shall approve this call, and nobody can look at so "
                           "much: make it shorter than 256 KiB");
    Approval wanted = approval_of(call);
    const std::optional<Decision> decision = co_await decide(call, std::move(wanted));
    if (!decision) co_return tool_error("cancelled", "cancelled while it waited for approval");
    event["decision"] = decision->approved ? "approved" : "denied";
    event["by"] = decision->by;
    event["scope"] = name(decision->scope);
    if (!decision->message.empty()) event["message"] = audit_.mask().text(decision->message);
    audit_.write(std::move(event));
    if (!decision->approved) {
      std::string why = decision->by_nobody ? "nobody has approved this call"
                                            : "a person did not approve this call";
      if (!decision->message.empty()) why += ": " + decision->message;
      co_return tool_error("not_approved", why);
    }
  }
  // What runs in the guest may outlast us: it is told before.
  if (call.tool == "python" || has_commands(call.tool)) {
    json::object began = audit_event("began", call);
    began["arguments"] = looked.shown;
    audit_.write(std::move(began));
  }
  co_return co_await run(call);
}

Async<ToolAnswer> Dispatcher::run(ToolCall& call) {
  if (call.cancel != nullptr && call.cancel->asked())
    co_return tool_error("cancelled", "cancelled before it began");
  if (is_closed(call)) co_return tool_error("failed", "the session was closed");
  if (call.instead) co_return co_await call.instead(call);
  if (call.tool == "python") co_return co_await run_python(call);
  if (call.tool == "shell") co_return co_await run_shell(call);
  if (Processes::has(call.tool)) co_return co_await processes_->run(call);
  if (tools::is_file_tool(call.tool)) co_return co_await run_file(call);
  if (call.tool.starts_with("session_")) co_return co_await run_sessions(call);
  co_return tool_error("unknown_tool", "there is no tool " + call.tool);
}

// Calls of one worker wait here and not in the engine, so that one that is cancelled while
// it waits goes without stopping the one before it.
std::shared_ptr<session::Turns> Dispatcher::lane(const std::string& session,
                                                 std::string_view worker) {
  std::weak_ptr<session::Turns>& known = lanes_[session + " " + std::string(worker)];
  std::shared_ptr<session::Turns> turns = known.lock();
  if (turns == nullptr) known = turns = std::make_shared<session::Turns>(loop_);
  std::erase_if(lanes_, [](const auto& entry) { return entry.second.expired(); });
  return turns;
}

}  // namespace belljar::server
