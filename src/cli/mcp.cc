// mcp: the tools over MCP, on standard input and output. Nothing else is printed there:
// what there is to say goes to standard error.
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "cli/configuration.h"
#include "cli/exec.h"
#include "cli/flags.h"
#include "cli/notices.h"
#include "cli/server_places.h"
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
};

Result<Request> parse(const Arguments& arguments) {
  Request request;
  std::string workspace;
  std::string permission;
  Parsed parsed = TRY(parse_flags(arguments, {{.name = "workspace", .value = &workspace},
                                              {.name = "permission", .value = &permission},
                                              {.name = "audit", .value = &request.audit_file}}));
  if (!parsed.rest.empty())
    return fail("unexpected argument " + parsed.rest[0], 0,
                "belljar mcp [FLAGS] [--workspace DIR]");
  const Caller caller = this_caller();
  if (!workspace.empty())
    TRY(set(parsed.settings, *find_key("workdir"), workspace,
            {.folder = caller.cwd, .home = caller.home}));
  request.loaded = TRY(load_here(parsed.settings));
  // Without a folder of its own choosing a client gets a fresh one for each session: where
  // it happens to start us says nothing about what we may change.
  if (parsed.settings.workdir) {
    TRY(check_workdir(request.loaded, caller));
    request.loaded.session.workdir = request.loaded.policy.files.workdir;
  }
  if (!permission.empty()) {
    const std::optional<Permission> floor = parse_permission(permission);
    if (!floor) return fail("--permission: " + permission + " is not one of auto, ask, deny");
    request.dispatch.floors.push_back({.otherwise = *floor, .tools = {}});
  }
  for (const std::string& notice : notices(parsed.settings, request.loaded, caller))
    print_warning(notice);
  return request;
}

Result<int> run_mcp(const Arguments& arguments) {
  Request request = TRY(parse(arguments));
  Loop loop;
  const std::unique_ptr<session::Engine> engine = TRY(session::Engine::make(
      loop, request.loaded.policy, this_caller(), request.loaded.session));
  server::Audit audit = TRY(open_audit(request.audit_file, request.loaded.policy));
  server::Dispatcher dispatcher(loop, *engine, std::move(request.dispatch), std::move(audit));
  server::McpService service(loop, server::mcp_facts());
  service.add(std::make_shared<server::McpOffer>(
      service, dispatcher,
      server::OfferSettings{.agent = {}, .where_to_go = "run `belljar approvals` to decide"}));

  const auto stop = std::make_shared<server::Cancel>();
  asio::signal_set signals(loop, SIGTERM, SIGINT, SIGHUP);
  signals.async_wait([&](boost::system::error_code error, int) {
    if (!error) stop->ask();
  });
  auto serve = [](server::McpService& to, std::shared_ptr<server::Cancel> until,
                  Loop& on) -> Async<void> {
    co_await server::serve_stdio(to, STDIN_FILENO, STDOUT_FILENO, std::move(until));
    on.stop();
  };
  begin(loop, serve(service, stop, loop));
  loop.run();
  return 0;
}

}  // namespace

int mcp(const Arguments& arguments) { return report(run_mcp(arguments)); }

}  // namespace belljar::cli
