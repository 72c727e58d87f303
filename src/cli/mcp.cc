// mcp: the tools over MCP, on standard input and output. Nothing else is printed there:
// what there is to say goes to standard error.
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "cli/agents.h"
#include "cli/configuration.h"
#include "cli/exec.h"
#include "cli/flags.h"
#include "cli/notices.h"
#include "cli/server_places.h"
#include "plan/workdir.h"
#include "server/approval_socket.h"
#include "server/dispatch.h"
#include "server/mcp_facts.h"
#include "server/mcp_offer.h"
#include "server/mcp_stdio.h"

namespace belljar::cli {
namespace {

struct Request {
  Loaded loaded;
  server::DispatchSettings dispatch;
  std::string audit_file;
  std::string agent;
};

Status take_agent(Request& request, const std::string& folder, const Caller& caller) {
  if (request.agent.empty()) return {};
  const server::Agent agent =
      TRY(find_agent(request.agent, agent_folders(folder, request.loaded, caller)));
  request.dispatch.agents[request.agent] = agent.permissions;
  return {};
}

Result<Request> parse(const Arguments& arguments) {
  Request request;
  std::string workspace;
  std::string permission;
  std::string agents;
  Parsed parsed = TRY(parse_flags(arguments, {{.name = "workspace", .value = &workspace},
                                              {.name = "permission", .value = &permission},
                                              {.name = "audit", .value = &request.audit_file},
                                              {.name = "agent", .value = &request.agent},
                                              {.name = "agents", .value = &agents}}));
  if (!parsed.rest.empty())
    return fail("unexpected argument " + parsed.rest[0], 0,
                "belljar mcp [FLAGS] [--workspace DIR]");
  const Caller caller = this_caller();
  if (!workspace.empty()) {
    const Origin origin{.folder = caller.cwd, .home = caller.home};
    const std::string folder = absolute_path(workspace, origin);
    TRY(check_workspace("--workspace", folder, caller, "-C"));
    TRY(set(parsed.settings, *find_key("workdir"), folder, origin));
    request.loaded = TRY(load_for(parsed.settings, folder));
  } else {
    request.loaded = TRY(load_here(parsed.settings));
  }
  // Now, and not to the model at each call.
  if (request.loaded.policy.mode != Mode::off) TRY(check_home(request.loaded.policy.files, caller));
  // Without a folder of its own choosing a client gets a fresh one for each session: where
  // it happens to start us says nothing about what we may change.
  if (parsed.settings.workdir) {
    TRY(check_workdir(request.loaded, caller));
    request.loaded.session.workdir = request.loaded.policy.files.workdir;
  }
  request.dispatch.floors = request.loaded.permissions;
  request.dispatch.approval_patience = request.loaded.server.approval_timeout;
  if (!permission.empty()) {
    const std::optional<Permission> floor = parse_permission(permission);
    if (!floor)
      return fail("--permission: " + permission + " is not one of auto, ask, deny", 0,
                  "--permission=ask asks a person about every call");
    request.dispatch.floors.push_back({.otherwise = *floor, .tools = {}});
  }
  TRY(take_agent(request, agents, caller));
  for (const std::string& notice : notices(parsed.settings, request.loaded, caller))
    print_warning(notice);
  return request;
}

Result<std::unique_ptr<server::ApprovalSocket>> open_approvals(
    Loop& loop, server::Dispatcher& dispatcher, const Result<RuntimeFolder>& folder) {
  if (!folder) return std::unexpected(folder.error());
  const std::string name = "/mcp-" + std::to_string(::getpid()) + ".sock";
  return server::ApprovalSocket::listen(loop, dispatcher.approvals(), server::OwnerKey(),
                                        folder->path(), folder->path() + name);
}

Result<int> run_mcp(const Arguments& arguments) {
  Request request = TRY(parse(arguments));
  (void)std::signal(SIGPIPE, SIG_IGN);  // who has hung up is an error of its own write
  Loop loop;
  // Before anything is made that must be removed, and until it has been: a signal that comes
  // while we start or end is kept.
  asio::signal_set signals(loop, SIGTERM, SIGINT, SIGHUP);
  Caller caller = this_caller();
  if (!request.audit_file.empty() && request.audit_file != "none")
    caller.own.push_back(
        absolute_path(request.audit_file, {.folder = caller.cwd, .home = caller.home}));
  const std::unique_ptr<session::Engine> engine =
      TRY(session::Engine::make(loop, request.loaded.policy, std::move(caller),
                                request.loaded.session, request.loaded.bound));
  // A workspace that no call could work in is said now, and not to the model at each of them.
  if (!request.loaded.session.workdir.empty()) {
    const session::Look look = TRY(engine->look());
    TRY(look());
  }
  server::Audit audit = TRY(open_audit(request.audit_file, request.loaded.policy));
  server::Dispatcher dispatcher(loop, *engine, std::move(request.dispatch), std::move(audit));
  // Without a socket a call that must be approved can still be by the client, or times out.
  const Result<RuntimeFolder> folder = RuntimeFolder::hold();
  const Result<std::unique_ptr<server::ApprovalSocket>> socket =
      open_approvals(loop, dispatcher, folder);
  if (!socket)
    print_warning("belljar approvals will not find this server: " + socket.error().message());
  server::McpService service(loop, server::mcp_facts());
  service.work_beside(engine->aside());
  service.add(std::make_shared<server::McpOffer>(
      service, dispatcher,
      server::OfferSettings{.agent = request.agent,
                            .where_to_go = "run `belljar approvals` to decide"}));

  const auto stop = std::make_shared<server::Cancel>();
  signals.async_wait([&](boost::system::error_code error, int) {
    if (error) return;
    dispatcher.approvals().close("the server is stopping");
    // The calls that waited go on first: what became of them is written down and answered.
    asio::post(loop, [stop] { stop->ask(); });
    signals.async_wait([&](boost::system::error_code again, int) {
      if (!again) loop.stop();
    });
  });
  auto serve = [](server::McpService& to, std::shared_ptr<server::Cancel> until,
                  Loop& on) -> Async<void> {
    co_await server::serve_stdio(to, STDIN_FILENO, STDOUT_FILENO, std::move(until));
    on.stop();
  };
  begin(loop, serve(service, stop, loop));
  loop.run();
  if (const std::optional<std::string> left = engine->end())
    print_warning("guests left more than could be removed in time; the next start removes " +
                  *left);
  return 0;
}

}  // namespace

int mcp(const Arguments& arguments) { return report(run_mcp(arguments)); }

}  // namespace belljar::cli
