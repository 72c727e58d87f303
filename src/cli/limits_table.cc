#include "cli/limits_table.h"

#include <chrono>
#include <vector>

#include "base/json_size.h"
#include "belljar/session.h"
#include "policy/server_keys.h"
#include "server/continuations.h"
#include "server/event_hub.h"
#include "server/fields.h"
#include "server/http.h"
#include "server/limits.h"
#include "server/mcp_http.h"
#include "server/mcp_message.h"
#include "server/route.h"
#include "server/skill_archive.h"
#include "server/skills.h"
#include "tools/arguments.h"
#include "tools/edit.h"
#include "tools/glob.h"
#include "tools/grep.h"
#include "tools/needle.h"
#include "tools/read.h"
#include "tools/workspace.h"
#include "tools/write.h"

namespace belljar::cli {
namespace {

struct Row {
  std::string what;
  std::string most;
  std::string over;     // what happens beyond it
  std::string setting;  // empty: none changes it
};

std::string bytes(std::uint64_t count) {
  if (count % (std::uint64_t{1} << 20) == 0) return std::to_string(count >> 20) + " MiB";
  return std::to_string(count >> 10) + " KiB";
}

std::string time(std::chrono::milliseconds value) {
  return std::to_string(value.count() / 1000) + " s";
}

std::string number(std::uint64_t count) {
  std::string text = std::to_string(count);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

std::vector<Row> sizes() {
  using namespace server;
  return {
      {"line and headers of a request", bytes(HttpLimits().header_bytes), "431", ""},
      {"a body of JSON, `/mcp` too", bytes(kMaxJson), "413", ""},
      {"depth and values of it", number(kMaxJsonDepth) + " and " + number(kMaxJsonValues), "400",
       ""},
      {"code, or all commands of a call", bytes(kMaxCode), "400", ""},
      {"commands of a call", number(tools::kMaxCommands), "400", ""},
      {"a path; a pattern of `glob`; of `grep`",
       bytes(tools::kMaxPath) + "; " + bytes(tools::kMaxPath) + "; " + bytes(tools::kMaxExpression),
       "`invalid_arguments`", ""},
      {"variables of a program; their bytes",
       number(tools::kMaxVariables) + "; " + bytes(tools::kMaxVariableBytes),
       "400; `invalid_arguments` of a tool", ""},
      {"a call that a person must approve", bytes(kMaxAskedAbout), "`denied`", ""},
      {"a pattern that is approved; a word to the model with it",
       bytes(kMaxPattern) + "; " + bytes(kMaxDecisionMessage), "400", ""},
      {"a file that is uploaded", bytes(kMaxUpload), "413; send parts and join them", ""},
      {"a skill that is uploaded", bytes(kMaxSkillUpload), "413", ""},
      {"the same unpacked; its files", bytes(kMaxSkillUnpacked) + "; " + number(kMaxSkillFiles),
       "400", ""},
      {"values of a policy; patterns among them",
       number(kMaxPolicyValues) + "; " + number(kMaxPolicyPatterns), "400", ""},
      {"a value of a policy", bytes(kMaxPolicyValue), "400", ""},
      {"a message to `belljar mcp`", bytes(kMaxMcpMessage), "an error of the protocol", ""},
  };
}

std::vector<Row> counts() {
  using namespace server;
  const ServerSettings settings;
  return {
      {"connections", number(settings.max_connections),
       "the one idle for longest goes; 503 if none is", "max_connections"},
      {"requests of a token that run or wait", number(settings.max_requests), "429",
       "max_requests"},
      {"the same of all tokens", number(settings.max_requests_total), "503", "max_requests_total"},
      {"sessions of a token", number(settings.max_sessions_per_token), "429",
       "max_sessions_per_token"},
      {"sessions of the server", number(SessionSettings().max_sessions), "503",
       "max_sessions in `[session]`"},
      {"event streams of a token", number(kMaxEventStreams), "429", ""},
      {"its sessions of MCP over HTTP", number(kMaxMcpSessionsOfOne),
       "the one idle for longest goes", ""},
      {"of a token, those that listen over MCP", number(kMaxListening), "an error of the protocol",
       ""},
      {"calls of a dispatch that still run, of a session", number(kMaxContinuations),
       "`content` says so", ""},
      {"skills of a token; what they take on the disk",
       number(kMaxSkillsOfOne) + "; " + bytes(kMaxSkillBytesOfOne), "429", ""},
      {"patterns and commands that were approved, of a session; bytes of the patterns",
       number(kMaxApproved) + "; " + bytes(kMaxApprovedBytes), "409", ""},
      {"programs of `process_start`, of a session; of all of a token",
       number(kMaxPrograms) + "; " + number(kMaxProgramsOfOne), "`limit`", ""},
  };
}

std::vector<Row> answers() {
  using namespace server;
  const SessionSettings session;
  return {
      {"output of a call, each stream", bytes(session.max_output),
       "head and tail are kept, the cut is said", "max_output_kb in `[session]`"},
      {"content of a file that a call made", bytes(session.max_file), "only its name and size come",
       "max_file_kb in `[session]`"},
      {"the same of all files of a call", bytes(session.max_file_total), "the same",
       "max_file_total_kb in `[session]`"},
      {"lines and bytes of `read`",
       number(tools::kMaxReadLines) + "; " + bytes(tools::kMaxReadBytes), "`offset` reads on", ""},
      {"matches of `grep`; paths of `glob`",
       number(tools::kMaxMatches) + "; " + number(tools::kMaxGlobbed), "the rest is left out", ""},
      {"a file of `write`; of `edit`",
       bytes(tools::kMaxWriteBytes) + "; " + bytes(tools::kMaxEditBytes), "an error of the tool",
       ""},
  };
}

std::vector<Row> times() {
  using namespace server;
  const ServerSettings settings;
  const SessionSettings session;
  return {
      {"a call of Python; of the shell, unless it says otherwise",
       time(session.python_timeout) + "; " + time(session.shell_timeout), "`timeout`",
       "python_timeout, shell_timeout in `[session]`"},
      {"what a call may ask for", time(session.max_timeout), "it gets that much",
       "max_timeout in `[session]`"},
      {"waiting for approval", time(settings.approval_timeout), "`not_approved`",
       "approval_timeout"},
      {"an answer of `/v1/dispatch`", time(settings.dispatch_wait), "a continuation",
       "dispatch_wait"},
      {"one `process_poll`", time(std::chrono::milliseconds(kMaxPollMs)), "what there is by then",
       ""},
      {"the head of a request; its body",
       time(settings.header_timeout) + "; " + time(settings.body_timeout) +
           ", and more for a large one",
       "408", "header_timeout, body_timeout"},
      {"a session that nobody uses", time(session.idle), "it ends; its next call has a fresh one",
       "idle in `[session]`"},
  };
}

}  // namespace

std::string limits_table() {
  std::string text = "| of | at most | beyond it | set by |\n|---|---|---|---|\n";
  for (const std::vector<Row>& rows : {sizes(), counts(), answers(), times()})
    for (const Row& row : rows)
      text += "| " + row.what + " | " + row.most + " | " + row.over + " | " + row.setting + " |\n";
  return text;
}

}  // namespace belljar::cli
