// approvals: what models wait for, shown to a person who decides.
#include <poll.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdio>
#include <iostream>

#include "base/file.h"
#include "base/json.h"
#include "base/json_field.h"
#include "base/printable.h"
#include "base/syscall.h"
#include "cli/approval_servers.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/session_loop.h"

namespace belljar::cli {
namespace {

namespace json = boost::json;

// All of it: what is not shown must not be approved.
std::string shown(std::string_view text) {
  std::string safe;
  while (true) {
    const std::size_t end = text.find('\n');
    safe += visible(text.substr(0, end));
    if (end == text.npos) return safe;
    safe += "\n    ";
    text.remove_prefix(end + 1);
  }
}

std::string tool_of(const json::object& approval) {
  const json::value* tool = approval.if_contains("tool");
  return tool != nullptr && tool->is_object() ? text_of(tool->get_object(), "kind") : "";
}

// Whether patterns and sameness are about anything in it.
bool has_commands(const json::object& approval) {
  const std::string tool = tool_of(approval);
  return tool == "shell" || tool == "process_start";
}

void print(const json::object& approval) {
  const std::string by = text_of(approval, "asked_by");
  const std::string agent = text_of(approval, "agent");
  std::string who;
  if (!by.empty()) who += "  asked by " + shown(by);
  if (!agent.empty()) who += "  agent " + shown(agent);
  std::printf("%s  %s  session %s%s\n", styled(shown(tool_of(approval)), Style::bold, 1).c_str(),
              shown(text_of(approval, "approval_id")).c_str(),
              shown(text_of(approval, "session_id")).c_str(), who.c_str());
  const json::value* arguments = approval.if_contains("arguments");
  if (arguments == nullptr || !arguments->is_object()) return;
  for (const auto& argument : arguments->get_object()) {
    const json::value& value = argument.value();
    const std::string text =
        value.is_string() ? std::string(value.get_string()) : json::serialize(value);
    std::printf("  %s:\n    %s\n", shown(argument.key()).c_str(), shown(text).c_str());
  }
}

// What there is of all that can be asked, and an error about each that cannot.
struct Waiting {
  json::array approvals;
  std::vector<Error> lost;
};

Result<Waiting> all_that_wait() {
  ApprovalServers servers = TRY(approval_servers());
  Waiting waiting{.approvals = {}, .lost = std::move(servers.lost)};
  for (ApprovalServer& server : servers.found) {
    const Result<json::array> pending = server.pending();
    if (!pending) waiting.lost.push_back(pending.error());
    if (pending)
      waiting.approvals.insert(waiting.approvals.end(), pending->begin(), pending->end());
  }
  return waiting;
}

Result<int> list(bool as_json) {
  const Waiting waiting = TRY(all_that_wait());
  if (as_json) write_all(1, pretty(waiting.approvals));
  if (!as_json && waiting.approvals.empty())
    std::puts(waiting.lost.empty() ? "Nothing waits for approval."
                                   : "Nothing waits for approval where it could be asked.");
  for (const json::value& one : waiting.approvals)
    if (!as_json && one.is_object()) print(one.get_object());
  std::fflush(stdout);
  for (const Error& error : waiting.lost) print_error(error);
  return waiting.lost.empty() ? 0 : 1;
}

bool is_about(const json::value& approval, const json::object& decision) {
  if (!approval.is_object()) return false;
  return text_of(approval.get_object(), "approval_id") == text_of(decision, "approval_id");
}

// Whether the server has that one.
Result<bool> awaits(ApprovalServer& server, const json::object& decision) {
  const json::array pending = TRY(server.pending());
  return std::ranges::any_of(pending,
                             [&](const json::value& one) { return is_about(one, decision); });
}

Result<int> decide(const json::object& decision) {
  ApprovalServers servers = TRY(approval_servers());
  for (ApprovalServer& server : servers.found) {
    const Result<bool> here = awaits(server, decision);
    if (!here) servers.lost.push_back(here.error());
    if (!here || !*here) continue;
    TRY(server.decide(decision));
    return 0;
  }
  for (const Error& error : servers.lost) print_error(error);
  return fail("nothing of that id waits for approval", 0, "belljar approvals list");
}

// ---- asking -------------------------------------------------------------------

constexpr const char* kChoices =
    "  y          yes, this once\n"
    "  n [WORDS]  no; the words are for the model\n"
    "  a          always: every call of this tool, until the session ends\n";
constexpr const char* kChoicesOfCommands =
    "  s          the very same commands, until the session ends\n"
    "  p PATTERN  commands of this tool that match, until the session ends: p git *\n";

// What a line that was typed says; false: nothing that is understood.
bool read_choice(const std::string& line, bool of_commands, json::object& decision) {
  const std::size_t space = std::min(line.find(' '), line.size());
  const std::string word = line.substr(0, space);
  const std::string rest = line.substr(std::min(space + 1, line.size()));
  if (word == "n" || word == "no") {
    decision["decision"] = "deny";
    if (!rest.empty()) decision["message"] = rest;
    return true;
  }
  decision["decision"] = "approve";
  if (of_commands && (word == "p" || word == "pattern") && !rest.empty()) {
    decision["scope"] = "pattern";
    decision["pattern"] = rest;
    return true;
  }
  if (!rest.empty()) return false;
  if (word == "a" || word == "always") decision["scope"] = "tool";
  if (of_commands && (word == "s" || word == "same")) decision["scope"] = "same";
  return decision.contains("scope") || word == "y" || word == "yes";
}

// nullopt: nobody types any more.
std::optional<json::object> ask(const json::object& approval) {
  const bool of_commands = has_commands(approval);
  for (;;) {
    std::printf("[y]es [n]o [a]lways (this tool, in this session)%s [?] ",
                of_commands ? " [s]ame [p]attern (commands, in this session)" : "");
    std::fflush(stdout);
    std::string line;
    if (!std::getline(std::cin, line)) return std::nullopt;
    json::object decision{{"op", "decide"}, {"approval_id", text_of(approval, "approval_id")}};
    if (read_choice(line, of_commands, decision)) return decision;
    std::printf("%s%s", kChoices, of_commands ? kChoicesOfCommands : "");
  }
}

// Until it is decided. False: nobody types any more.
Result<bool> ask_and_decide(ApprovalServer& server, const json::object& approval) {
  print(approval);
  for (;;) {
    const std::optional<json::object> decision = ask(approval);
    if (!decision) return false;
    const Status done = server.decide(*decision);
    if (done) return true;
    print_warning(done.error().message());
    // A pattern that does not match is no decision yet.
    if (!TRY(awaits(server, *decision))) return true;
  }
}

// What a server has said. False: nobody types any more.
Result<bool> hear(ApprovalServer& server) {
  TRY(server.read());
  while (const std::optional<json::object> message = server.take()) {
    if (text_of(*message, "event") != "required") continue;
    if (!TRY(ask_and_decide(server, *message))) return false;
  }
  return true;
}

Result<int> converse() {
  ApprovalServers servers = TRY(approval_servers());
  std::deque<ApprovalServer>& all = servers.found;
  for (const Error& error : servers.lost) print_error(error);
  if (all.empty())
    return fail("no server of yours runs", 0,
                "start `belljar mcp` or `belljar serve` with permissions that ask");
  std::erase_if(all, [](ApprovalServer& server) {
    const Status sent = server.send({{"op", "watch"}});
    if (!sent) print_error(sent.error());
    return !sent;
  });
  std::fputs("Waiting for calls to approve; ^C ends.\n", stderr);
  while (!all.empty()) {
    std::vector<pollfd> waits;
    for (const ApprovalServer& server : all)
      waits.push_back({.fd = server.fd(), .events = POLLIN, .revents = 0});
    if (retry([&] { return ::poll(waits.data(), waits.size(), -1); }) < 0)
      return fail("poll", errno);
    for (std::size_t i = all.size(); i-- > 0;) {
      if (waits[i].revents == 0) continue;
      const Result<bool> heard = hear(all[i]);
      if (heard && !*heard) return 0;
      if (heard) continue;
      print_error(heard.error());
      all.erase(all.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  return 1;  // nobody is left to ask
}

Status check_scope(const std::string& scope, const std::string& pattern, bool approves) {
  constexpr const char* kScopesAre =
      "once, tool (every call of it), pattern (commands that match --pattern) or same (the very "
      "same commands); all but once count until the session ends";
  if (!scope.empty() && std::ranges::find(kScopes, scope) == std::end(kScopes))
    return fail("--scope: " + printable(scope) + " is none", 0, kScopesAre);
  if (!approves && !scope.empty()) return fail("a no counts once, and has no scope");
  if (scope == "pattern" && pattern.empty())
    return fail("--scope=pattern: which one?", 0, "--pattern='git *'");
  if (!pattern.empty() && scope != "pattern")
    return fail("--pattern goes with --scope=pattern only", 0, "leave --scope out");
  return {};
}

Result<int> run_approvals(const Arguments& arguments) {
  bool as_json = false;
  std::string scope;
  std::string pattern;
  std::string message;
  const std::vector<Flag> own = {{.name = "json", .seen = &as_json},
                                 {.name = "scope", .value = &scope},
                                 {.name = "pattern", .value = &pattern},
                                 {.name = "message", .value = &message}};
  const Arguments rest = TRY(parse_words(arguments, own));
  const auto wrong = fail("wrong arguments", 0, "belljar approvals [list | approve ID | deny ID]");
  if (rest.size() > 2) return wrong;
  if (rest.empty()) return as_json ? Result<int>(wrong) : converse();
  if (rest[0] == "list" && rest.size() == 1) return list(as_json);
  if ((rest[0] != "approve" && rest[0] != "deny") || rest.size() != 2) return wrong;
  json::object decision{{"op", "decide"}, {"approval_id", rest[1]}, {"decision", rest[0]}};
  if (!pattern.empty() && scope.empty()) scope = "pattern";
  TRY(check_scope(scope, pattern, rest[0] == "approve"));
  if (!scope.empty()) decision["scope"] = scope;
  if (!pattern.empty()) decision["pattern"] = pattern;
  if (!message.empty()) decision["message"] = message;
  return decide(decision);
}

}  // namespace

int approvals(const Arguments& arguments) { return report(run_approvals(arguments)); }

}  // namespace belljar::cli
