// The MCP endpoint over plain HTTP, with the conformance suite's fixtures beside belljar's
// own tools. Prints its port; ends with its standard input.
#include <unistd.h>

#include <csignal>

#include "http_front.h"
#include "mcp_fixtures.h"
#include "policy/profiles.h"
#include "server/mcp_facts.h"
#include "server/mcp_offer.h"

int main(int argc, char** argv) {
  using namespace belljar;
  using namespace belljar::server;
  ::signal(SIGPIPE, SIG_IGN);
  Loop loop;
  Settings settings;
  settings.profile = argc > 1 ? argv[1] : "developer";
  const Caller caller = this_process();
  const Result<Policy> policy = make_policy(settings, {.cwd = caller.cwd, .home = caller.home});
  if (!policy) return 1;
  SessionSettings sessions;
  sessions.preload = {};
  auto engine = session::Engine::make(loop, *policy, caller, sessions);
  if (!engine) return 1;
  DispatchSettings dispatch;
  if (argc > 2) dispatch.floors.push_back({.otherwise = *parse_permission(argv[2]), .tools = {}});
  Dispatcher dispatcher(loop, **engine, std::move(dispatch), {});
  McpFacts facts = mcp_facts();
  facts.capabilities["tools"] = json::object{{"listChanged", true}};
  facts.capabilities["prompts"] = json::object{{"listChanged", true}};
  McpService service(loop, std::move(facts));
  service.add(std::make_shared<Fixtures>(service));
  service.add(std::make_shared<McpOffer>(
      service, dispatcher, OfferSettings{.agent = {}, .where_to_go = "decide elsewhere"}));
  McpHttp endpoint(service, sessions.idle);
  begin(loop, serve_http(loop, endpoint));
  Stream input(loop, ::dup(0));
  auto watch = [](Stream& from, Loop& on) -> Async<void> {
    char bytes[64];
    for (bool more = true; more;) {
      more = co_await readable(from);
      more = more && ::read(from.native_handle(), bytes, sizeof bytes) > 0;
    }
    on.stop();
  };
  begin(loop, watch(input, loop));
  loop.run();
  endpoint.close();
  return 0;
}
