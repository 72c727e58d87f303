// The handlers of the table of routes, by what they are about.
#pragma once

#include "server/app.h"

namespace belljar::server {

// handlers_system.cc
Async<Response> get_health(App& app, Request request);
Async<Response> get_ready(App& app, Request request);
Async<Response> get_capabilities(App& app, Request request);
Async<Response> get_metrics(App& app, Request request);
Async<Response> get_events(App& app, Request request);
Async<Response> get_openapi(App& app, Request request);
Async<Response> get_page(App& app, Request request);

// handlers_sessions.cc
Async<Response> list_sessions(App& app, Request request);
Async<Response> create_session(App& app, Request request);
Async<Response> get_session(App& app, Request request);
Async<Response> delete_session(App& app, Request request);
Async<Response> reset_session(App& app, Request request);
Async<Response> interrupt_session(App& app, Request request);
Async<Response> make_dispatch_address(App& app, Request request);

// handlers_execute.cc
Async<Response> execute_python(App& app, Request request);
Async<Response> execute_shell(App& app, Request request);
Async<Response> execute_spawn(App& app, Request request);
Async<Response> execute_python_once(App& app, Request request);
Async<Response> execute_shell_once(App& app, Request request);
Async<Response> execute_spawn_once(App& app, Request request);

// handlers_tools.cc
Async<Response> list_tools(App& app, Request request);
Async<Response> list_session_tools(App& app, Request request);
Async<Response> call_session_tool(App& app, Request request);
Async<Response> list_approvals(App& app, Request request);
Async<Response> get_approval(App& app, Request request);
Async<Response> decide_approval(App& app, Request request);
Async<Response> dispatch(App& app, Request request);

// handlers_files.cc
Async<Response> list_files(App& app, Request request);
Async<Response> download_file(App& app, Request request);
Async<Response> upload_file(App& app, Request request);
Async<Response> delete_file(App& app, Request request);

// handlers_mcp.cc
Async<Response> serve_mcp(App& app, Request request);

// handlers_skills.cc
Async<Response> list_skills(App& app, Request request);
Async<Response> upload_skill(App& app, Request request);
Async<Response> get_skill(App& app, Request request);
Async<Response> delete_skill(App& app, Request request);
Async<Response> list_skill_versions(App& app, Request request);
Async<Response> upload_skill_version(App& app, Request request);

}  // namespace belljar::server
