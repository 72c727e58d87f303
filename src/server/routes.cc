// Everything that is served.
#include "server/handlers.h"

namespace belljar::server {
namespace {

// A line of the table: what is asked, by whom, who answers; then what goes in and comes out.
struct Line {
  Route route;

  Line takes(std::string_view schema, std::uint64_t most = kMaxJson) {
    route.takes = schema;
    route.max_body = most;
    return *this;
  }
  Line gives(std::string_view schema, int status = 200) {
    route.gives = schema;
    route.status = status;
    return *this;
  }
  Line gives_nothing() { return gives({}, 204); }
  Line asks(std::vector<QueryField> query) {
    route.query = std::move(query);
    return *this;
  }
  Line refuses(std::vector<int> statuses) {
    route.refusals = std::move(statuses);
    return *this;
  }
};

Line line(std::string_view method, std::string_view pattern, Right right, Handler handler,
          std::string_view summary) {
  return {{method, pattern, right, {}, summary, handler}};
}
Line get(std::string_view pattern, Right right, Handler handler, std::string_view summary) {
  return line("GET", pattern, right, handler, summary);
}
Line post(std::string_view pattern, Right right, Handler handler, std::string_view summary) {
  return line("POST", pattern, right, handler, summary);
}
Line put(std::string_view pattern, Right right, Handler handler, std::string_view summary) {
  return line("PUT", pattern, right, handler, summary);
}
Line remove(std::string_view pattern, Right right, Handler handler, std::string_view summary) {
  return line("DELETE", pattern, right, handler, summary).gives_nothing();
}

std::vector<Line> system_lines() {
  return {
      get("/v1/health", Right::none, get_health, "the server answers").gives("Status"),
      get("/v1/ready", Right::none, get_ready, "the server takes requests").gives("Status"),
      get("/v1/capabilities", Right::read, get_capabilities, "what is enforced here")
          .gives("Capabilities"),
      get("/metrics", Right::read, get_metrics, "counters for Prometheus").gives("text"),
      get("/v1/events", Right::read, get_events, "what happens, as it does")
          .gives("events")
          .asks(
              {{"session", "of this session only"}, {"types", "only these, with commas between"}}),
      get("/openapi.json", Right::none, get_openapi, "this description").gives("Description"),
      get("/", Right::none, get_page, "this description, for people").gives("html"),
  };
}

std::vector<Line> session_lines() {
  return {
      get("/v1/sessions", Right::read, list_sessions, "the sessions that this token may use")
          .gives("Sessions"),
      post("/v1/sessions", Right::run, create_session, "make a session")
          .takes("SessionRequest")
          .gives("Session", 201)
          .refuses({404, 409}),
      get("/v1/sessions/{id}", Right::read, get_session, "a session, with its plan")
          .gives("Session"),
      remove("/v1/sessions/{id}", Right::run, delete_session, "end a session and remove its files"),
      post("/v1/sessions/{id}/reset", Right::run, reset_session,
           "a fresh interpreter; files and what else runs stay")
          .gives("SessionId"),
      post("/v1/sessions/{id}/interrupt", Right::run, interrupt_session,
           "ask the calls that run to stop, or one of them")
          .takes("InterruptRequest")
          .gives("SessionId"),
      post("/v1/sessions/{id}/dispatch", Right::run, make_dispatch_address,
           "make an address for tool dispatch that needs no header")
          .gives("DispatchAddress", 201)
          .refuses({500}),
  };
}

std::vector<Line> execute_lines() {
  return {
      post("/v1/sessions/{id}/python", Right::run, execute_python, "run Python in a session")
          .takes("PythonRequest")
          .gives("PythonResult")
          .refuses({409}),
      post("/v1/sessions/{id}/shell", Right::run, execute_shell, "run shell commands in a session")
          .takes("ShellRequest")
          .gives("ShellResult")
          .refuses({409}),
      post("/v1/sessions/{id}/spawn", Right::run, execute_spawn,
           "run a program in a session, without a shell")
          .takes("SpawnRequest")
          .gives("SpawnResult")
          .refuses({409}),
      post("/v1/execute/python", Right::run, execute_python_once,
           "run Python in a session of its own, which ends with it")
          .takes("PythonRequest")
          .gives("PythonResult")
          .refuses({409}),
      post("/v1/execute/shell", Right::run, execute_shell_once,
           "run shell commands in a session of their own, which ends with them")
          .takes("ShellRequest")
          .gives("ShellResult")
          .refuses({409}),
      post("/v1/execute/spawn", Right::run, execute_spawn_once,
           "run a program in a session of its own, which ends with it")
          .takes("SpawnRequest")
          .gives("SpawnResult")
          .refuses({409}),
  };
}

std::vector<Line> tool_lines() {
  return {
      get("/v1/tools", Right::read, list_tools, "the tools, as a fresh session has them")
          .gives("Tools"),
      get("/v1/sessions/{id}/tools", Right::read, list_session_tools, "the tools of a session")
          .gives("Tools"),
      post("/v1/sessions/{id}/tools/{tool}", Right::run, call_session_tool,
           "call a tool; its own failure is an answer too")
          .takes("ToolArguments")
          .gives("ToolAnswer"),
      post("/v1/dispatch/{session}", Right::dispatch, dispatch,
           "call a tool as mistral.rs does: always 200, with content, in time")
          .takes("DispatchRequest")
          .gives("DispatchAnswer")
          .asks({{"token", "a token for dispatch, where no header can be sent"}}),
  };
}

std::vector<Line> approval_lines() {
  return {
      get("/v1/approvals", Right::approve, list_approvals, "calls that wait for a person")
          .gives("Approvals"),
      get("/v1/approvals/{id}", Right::approve, get_approval, "one of them").gives("Approval"),
      post("/v1/approvals/{id}", Right::approve, decide_approval, "approve or deny it")
          .takes("DecisionRequest")
          .gives("Decided")
          .refuses({409}),
  };
}

std::vector<Line> file_lines() {
  return {
      get("/v1/sessions/{id}/files", Right::read, list_files, "a folder of the workdir")
          .gives("Files")
          .asks({{"path", "the folder; else the workdir"}})
          .refuses({409}),
      get("/v1/sessions/{id}/files/{path*}", Right::read, download_file, "a file, or a range of it")
          .gives("bytes")
          .refuses({409, 416}),
      put("/v1/sessions/{id}/files/{path*}", Right::run, upload_file, "make a file, or replace it")
          .takes("bytes", kMaxUpload)
          .gives("Uploaded", 201)
          .refuses({409, 507}),
      remove("/v1/sessions/{id}/files/{path*}", Right::run, delete_file,
             "remove a file, or an empty folder")
          .refuses({409, 507}),
  };
}

std::vector<Line> skill_lines() {
  return {
      get("/v1/skills", Right::read, list_skills, "the skills that this token may use")
          .gives("Skills"),
      post("/v1/skills", Right::run, upload_skill, "upload a skill: a zip, or loose files")
          .takes("form", kMaxSkillUpload)
          .gives("Skill", 201)
          .refuses({500, 507}),
      get("/v1/skills/{id}", Right::read, get_skill, "a skill, by id or name").gives("Skill"),
      remove("/v1/skills/{id}", Right::run, delete_skill, "remove a skill with all its versions"),
      get("/v1/skills/{id}/versions", Right::read, list_skill_versions, "the versions of a skill")
          .gives("SkillVersions"),
      post("/v1/skills/{id}/versions", Right::run, upload_skill_version, "upload another version")
          .takes("form", kMaxSkillUpload)
          .gives("Skill", 201)
          .refuses({500, 507}),
  };
}

std::vector<Line> mcp_lines() {
  return {
      post("/mcp", Right::run, serve_mcp, "a message of the Model Context Protocol")
          .takes("McpMessage")
          .gives("McpMessage")
          .refuses({404}),
      get("/mcp", Right::run, serve_mcp, "what belongs to no request, as it comes")
          .gives("events")
          .refuses({404, 405, 406}),
      remove("/mcp", Right::run, serve_mcp, "end a session of the protocol").refuses({404}),
  };
}

std::vector<Route> make_table() {
  std::vector<Route> table;
  const auto add = [&](std::string_view tag, std::vector<Line> lines) {
    for (Line& one : lines) {
      one.route.tag = tag;
      table.push_back(std::move(one.route));
    }
  };
  add("system", system_lines());
  add("sessions", session_lines());
  add("execute", execute_lines());
  add("tools", tool_lines());
  add("approvals", approval_lines());
  add("files", file_lines());
  add("skills", skill_lines());
  add("mcp", mcp_lines());
  return table;
}

}  // namespace

const std::vector<Route>& routes() {
  static const std::vector<Route> table = make_table();
  return table;
}

}  // namespace belljar::server
