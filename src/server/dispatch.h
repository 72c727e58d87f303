// Dispatcher: one call of one tool, the same for MCP, REST and whoever else asks:
//
//   whose session → permission → approval, if it must be asked → run → audit
//
// A tool's failure is an answer. It never depends on who asks what a tool does.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "policy/permissions.h"
#include "server/approvals.h"
#include "server/audit.h"
#include "server/cancel.h"
#include "server/places.h"
#include "session/engine.h"
#include "session/turns.h"

namespace belljar::server {

struct Image {
  std::string mime;
  std::string base64;
};

// A file of the session's workdir that is new or has changed.
struct FileLink {
  std::string name;  // relative to it
  std::string mime;
  std::uint64_t size = 0;
};

struct ToolAnswer;

struct ToolCall {
  std::string session;  // its whole name; empty: a new one, unless the arguments name one
  std::string tool;
  boost::json::object arguments;
  std::string principal;  // whose session it is; empty: the person who started us
  std::string by;         // who asks, where that is another: of a session that is shared
  std::string agent;      // whose permissions count too; empty: nobody's
  OnOutput on_output;
  std::shared_ptr<Cancel> cancel;

  // Hears that the call waits for a person, who decides by Dispatcher::approvals().
  std::function<void(const Approval&)> on_approval;
  // What a person has said already, to a question with these very arguments.
  std::optional<Decision> decision;
  bool wants_whole = false;        // fill in the answer's `whole` too
  bool may_open = true;            // a session that is not there
  bool only_this_session = false;  // session_list shows no other
  std::uint64_t number = 0;  // which session it is for, whatever may have its id later; by call()
  // Of the session, as its guest has them, where patterns are about paths; by find_folders().
  std::string workdir, home;
  // Runs in the tool's place once that is permitted.
  std::function<Async<ToolAnswer>(ToolCall&)> instead;
};

struct ToolAnswer {
  bool is_error = false;
  // unknown_tool, invalid_arguments, denied, not_approved, not_found, cancelled, exception,
  // timeout, exit_code, limit, failed, and those of the file tools.
  std::string error_type;
  std::string text;   // for a model
  std::string cause;  // for the audit, where it says more
  boost::json::object structured;
  boost::json::object whole;  // all that the session said of a call of python or shell
  std::vector<Image> images;
  std::vector<FileLink> files;
  std::string session;
  std::uint64_t number = 0;          // of the session
  boost::json::value shown;          // the arguments, as the audit has them
  std::shared_ptr<const void> kept;  // counts what it holds against its principal's limit
};

struct DispatchSettings {
  std::vector<Permissions> floors;            // the operator's; the strictest counts
  std::map<std::string, Permissions> agents;  // by name
  std::chrono::milliseconds approval_patience = std::chrono::seconds(300);
};

// Who keeps a list of sessions besides: it is asked before one becomes somebody's, and told.
struct SessionWatch {
  std::function<Status(const std::string& session, const std::string& principal)> may_begin;
  std::function<void(const std::string& session, const std::string& principal)> begun;
  std::function<void(const std::string& session)> ended;
  // Which one it had, where it was idle and gone; nothing: the engine's own.
  std::function<std::optional<Policy>(const std::string& session)> policy_of;
};

class Processes;

class Dispatcher {
 public:
  Dispatcher(Loop& loop, session::Engine& engine, DispatchSettings settings, Audit audit);
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;
  ~Dispatcher();

  Async<ToolAnswer> call(ToolCall call);

  // What call() would decide before it asks anybody. An unknown agent may do nothing.
  Permission permission(const ToolCall& call) const;
  // What permission() must know to tell which file a path is. The session's plan says it, which is
  // not made on the loop.
  Async<Status> find_folders(ToolCall& call);
  // Whether permission() is ask and no earlier decision of the session covers it.
  bool must_ask(const ToolCall& call) const;

  // Sessions are given by their whole names here, which say whose they are (owned_names.h).
  // Remembers one of the principal's own; an error, the same as for one that is not there, if it
  // is another's.
  Status claim(const std::string& session, const std::string& principal);
  bool may_use(const std::string& session, const std::string& principal) const;
  // The one that the call is for, as far as that is known.
  static std::string session_of(const ToolCall& call);
  Result<std::string> open(const std::string& principal, std::optional<Policy> policy = {});
  Status close(const std::string& session, const std::string& principal);
  std::vector<SessionInfo> sessions(const std::string& principal);

  void watch_sessions(SessionWatch watch) { watch_ = std::move(watch); }
  Approvals& approvals() { return approvals_; }
  // What waits for a person in that session is denied.
  void deny_waiting(const std::string& session, const std::string& by, const std::string& why) {
    approvals_.deny_those([&](const Approval& one) { return one.session == session; }, by, why);
  }
  Audit& audit() { return audit_; }
  session::Engine& engine() { return engine_; }
  // For what grows with what a principal sends or is sent.
  session::Beside beside(const std::string& principal) {
    return {engine_.aside(), loop_, principal};
  }
  const DispatchSettings& settings() const { return settings_; }
  // From the next call on.
  void set_permissions(std::vector<Permissions> floors, std::map<std::string, Permissions> agents) {
    settings_.floors = std::move(floors);
    settings_.agents = std::move(agents);
  }
  void set_approval_patience(std::chrono::milliseconds patience) {
    settings_.approval_patience = patience;
    approvals_.set_patience(patience);
  }

 private:
  // What the arguments of a call say by themselves.
  struct Looked {
    std::string misfit;                    // why they do not fit the tool; empty: they do
    boost::json::value shown;              // as the audit has them
    std::size_t length = 0;                // as people are shown them
    std::optional<Permission> permission;  // where that takes long to find
  };
  Async<Looked> look_at(ToolCall& call);
  Async<ToolAnswer> judge(ToolCall& call, const Looked& looked);
  Async<ToolAnswer> run(ToolCall& call);
  template <class Call, class Made>
  Async<ToolAnswer> run_code(ToolCall& call, Call asked, session::Worker worker,
                             Async<Result<Made>> (session::Engine::*method)(std::string, Call));
  Async<ToolAnswer> run_python(ToolCall& call);
  Async<ToolAnswer> run_shell(ToolCall& call);
  Async<ToolAnswer> run_sessions(ToolCall& call);
  Async<ToolAnswer> run_file(ToolCall& call);
  static boost::json::object audit_event(std::string_view event, const ToolCall& call);
  bool has_patterns(const ToolCall& call) const;
  bool is_approved(const ToolCall& call, std::size_t length) const;
  Approval approval_of(const ToolCall& call) const;
  Async<std::optional<Decision>> decide(const ToolCall& call, Approval wanted);
  std::optional<ToolAnswer> take_session(ToolCall& call);
  Status find_session(ToolCall& call);
  // What waited for its turn or a person must not run in what has its id now.
  bool is_closed(const ToolCall& call) const { return engine_.number(call.session) != call.number; }
  void forget_gone();
  void begun(const std::string& session, const std::string& principal);
  std::shared_ptr<session::Turns> lane(const std::string& session, std::string_view worker);

  Loop& loop_;
  session::Engine& engine_;
  DispatchSettings settings_;
  Approvals approvals_;
  Audit audit_;
  std::unique_ptr<Processes> processes_;
  SessionWatch watch_;
  std::set<std::string> known_;  // sessions, also those that were idle and have ended
  std::map<std::string, std::uint64_t> rounds_;
  std::map<std::string, std::weak_ptr<session::Turns>> lanes_;
  std::shared_ptr<Places> shown_ = std::make_shared<Places>();  // by calls, until they are answered
};

ToolAnswer tool_error(std::string type, std::string text);
// Of the engine. What is the host's to know stays out of its text, and goes to the audit.
ToolAnswer failure(const Error& error);

// What patterns are matched against: the commands of shell, the path of a file tool as it was
// given.
std::vector<PermissionSubject> subjects(std::string_view tool,
                                        const boost::json::object& arguments);
// Whether they are commands, of which a person may approve those that match or are the same.
bool has_commands(std::string_view tool);

}  // namespace belljar::server
