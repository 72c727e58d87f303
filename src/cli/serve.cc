// serve: sessions, tools and files over HTTP.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/printable.h"
#include "cli/agents.h"
#include "cli/configuration.h"
#include "cli/flags.h"
#include "cli/notices.h"
#include "cli/server_places.h"
#include "plan/scratch.h"
#include "plan/workdir.h"
#include "server/server.h"

namespace belljar::cli {
namespace {

struct Asked {
  Settings flags;
  std::vector<std::string> listen;
  std::string token_file, skills_dir, config, permission, agent, agents, audit;
  bool allow_remote = false;
  bool tenants_share = false;
};

Result<Asked> parse(const Arguments& arguments) {
  Asked asked;
  Parsed parsed =
      TRY(parse_flags(arguments, {{.name = "listen", .values = &asked.listen},
                                  {.name = "config", .value = &asked.config},
                                  {.name = "token-file", .value = &asked.token_file},
                                  {.name = "skills-dir", .value = &asked.skills_dir},
                                  {.name = "permission", .value = &asked.permission},
                                  {.name = "agent", .value = &asked.agent},
                                  {.name = "agents", .value = &asked.agents},
                                  {.name = "audit", .value = &asked.audit},
                                  {.name = "allow-remote", .seen = &asked.allow_remote},
                                  {.name = "no-tenant-isolation", .seen = &asked.tenants_share}}));
  if (!parsed.rest.empty())
    return fail("unexpected argument " + parsed.rest[0], 0, "belljar serve [FLAGS]");
  // A value that was forgotten: it would become a file, and the server run on.
  for (const std::string* path :
       {&asked.token_file, &asked.skills_dir, &asked.audit, &asked.agents})
    if (path->starts_with('-')) return fail(*path + " is no path", 0, "write ./" + *path);
  asked.flags = std::move(parsed.settings);
  return asked;
}

Result<std::string> state_folder(const Caller& caller) {
  const std::string file = config_places(caller).trust_file;
  if (caller.home == "/" && file.starts_with("//"))
    return fail("HOME names no folder: there is no place for tokens and skills", 0,
                "set HOME to a folder of yours, or give --token-file and --skills-dir");
  return file.substr(0, file.rfind('/'));
}

std::string absolute(const std::string& path, const Caller& caller) {
  return absolute_path(path, {.folder = caller.cwd, .home = caller.home});
}

Result<Loaded> load_settings(const Asked& asked) {
  const Caller caller = this_caller();
  const ConfigPlaces places = config_places(caller);
  ConfigFiles files;
  // A file that is named is the operator's own word; the one of a project is not looked for.
  if (asked.config.empty()) {
    files = TRY(read_config_files(places));
  } else {
    ConfigPlaces named = places;
    named.user_file = absolute(asked.config, caller);
    named.cwd = "/";
    if (::access(named.user_file.c_str(), R_OK) < 0)
      return fail("read " + named.user_file, errno, "--config=FILE names the server's settings");
    files = TRY(read_config_files(named));
  }
  Loaded loaded = TRY(load(files, places, asked.flags));
  ServerSettings& server = loaded.server;
  if (!asked.listen.empty()) server.listen = asked.listen;
  if (!asked.token_file.empty()) server.token_file = absolute(asked.token_file, caller);
  if (!asked.skills_dir.empty()) server.skills_dir = absolute(asked.skills_dir, caller);
  if (asked.allow_remote) server.allow_remote = true;
  if (loaded.policy.mode != Mode::off) TRY(check_home(loaded.policy.files, caller));
  if (server.token_file.empty()) {
    const std::string state = TRY(state_folder(caller));
    std::error_code ignored;  // the token file says why
    std::filesystem::create_directories(state, ignored);
    // The audit trail lies there too, and is kept only where nobody else can write.
    (void)::chmod(state.c_str(), 0700);
    server.token_file = state + "/tokens";
  }
  if (server.skills_dir.empty()) server.skills_dir = TRY(state_folder(caller)) + "/skills";
  // A server's sessions share a folder only when the operator says so by name.
  if (asked.flags.workdir) loaded.session.workdir = loaded.policy.files.workdir;
  if (!loaded.session.workdir.empty())
    TRY(check_workspace(asked.flags.workdir ? "--workdir" : "workdir in [session]",
                        loaded.session.workdir, caller));
  if (const auto timeout = loaded.policy.limits.timeout)
    loaded.session.python_timeout = loaded.session.shell_timeout = loaded.session.max_timeout =
        *timeout;
  return loaded;
}

// The local one, by which `belljar sessions` finds it. Who was told where to listen may be one of
// several, and runs without a place for it too.
Result<std::string> socket_of(const Asked& asked, const ServerSettings& settings,
                              const Result<RuntimeFolder>& folder) {
  if (!settings.socket.empty()) return settings.socket;
  if (asked.listen.empty()) return TRY(runtime_folder()) + "/" + kServeSocket;
  return folder ? folder->path() + "/" + own_serve_socket() : std::string();
}

Result<std::vector<server::ListenAddress>> addresses_of(const ServerSettings& settings,
                                                        const std::string& socket) {
  std::vector<server::ListenAddress> addresses;
  for (const std::string& text : settings.listen) {
    server::ListenAddress address = TRY(server::parse_listen(text));
    if (!address.is_loopback() && !settings.allow_remote)
      return fail("others can reach " + text + ", and every one of them who has a token", 0,
                  "--allow-remote says that they may; put a proxy with TLS before it, or listen on "
                  "127.0.0.1");
    addresses.push_back(std::move(address));
  }
  if (!socket.empty()) addresses.push_back({.path = socket, .endpoint = {}});
  return addresses;
}

// The strictest counts: of the settings, the flag and the agent that the operator names. A
// request may name another agent besides, of those that are there.
Status set_permissions(server::Setup& setup, const Asked& asked) {
  server::DispatchSettings& dispatch = setup.dispatch;
  dispatch.floors = setup.loaded.permissions;
  dispatch.approval_patience = setup.loaded.server.approval_timeout;
  if (!asked.permission.empty()) {
    const std::optional<Permission> floor = parse_permission(asked.permission);
    if (!floor)
      return fail("--permission: " + asked.permission + " is not one of auto, ask, deny", 0,
                  "--permission=ask asks a person about every call");
    dispatch.floors.push_back({.otherwise = *floor, .tools = {}});
  }
  const std::vector<std::string> folders = agent_folders(asked.agents, setup.loaded, setup.caller);
  for (const auto& [name, agent] : TRY(all_agents(folders)))
    dispatch.agents[name] = agent.permissions;
  if (!asked.agent.empty())
    dispatch.floors.push_back(TRY(find_agent(asked.agent, folders)).permissions);
  return {};
}

// At the start a token file that is not there is made. Later somebody may just be writing it anew:
// a fresh token would shut out all the others.
using TokenReader = Result<server::Tokens> (*)(const std::string& path);

Result<server::Setup> setup_of(const Asked& asked, TokenReader read_tokens) {
  server::Setup setup;
  setup.caller = this_caller();
  setup.loaded = TRY(load_settings(asked));
  const ServerSettings& settings = setup.loaded.server;
  setup.tokens = TRY(read_tokens(settings.token_file));
  setup.names = {.hosts = settings.hosts, .origins = settings.origins};
  setup.skills_dir = settings.skills_dir;
  // Wherever the operator has put them.
  setup.caller.own = {settings.token_file, settings.skills_dir};
  if (!settings.socket.empty()) setup.caller.own.push_back(settings.socket);
  if (!asked.config.empty()) setup.caller.own.push_back(absolute(asked.config, setup.caller));
  if (!asked.audit.empty() && asked.audit != "none")
    setup.caller.own.push_back(absolute(asked.audit, setup.caller));
  TRY(set_permissions(setup, asked));
  // Who reaches it by an address may name it by that.
  for (const std::string& text : settings.listen) {
    const server::ListenAddress address = TRY(server::parse_listen(text));
    if (!address.is_local())
      setup.names.hosts.push_back(server::host_name_of(address.endpoint.text()));
  }
  return setup;
}

// Lines that came from elsewhere must not look like others.
void say(const std::string& what) {
  std::fputs(("belljar: " + printable(what) + "\n").c_str(), stderr);
}

// Whether guests see where all sessions have their folders.
bool shows_all_sessions(const Files& files) {
  const auto shows = [](const Grant& grant) {
    std::error_code ignored;  // what cannot be resolved is compared as it stands
    const std::string path = std::filesystem::weakly_canonical(grant.path, ignored);
    return (grant.access == Access::read || grant.access == Access::write) &&
           (path == "/" || path == kScratchFolder);
  };
  return files.reads == Reads::everything || files.writes_everything ||
         std::ranges::any_of(files.grants, shows) || files.tmp_dir == kScratchFolder;
}

// A promise of the server's that its policy takes away is not taken away in silence.
Status check_tenants(const Asked& asked, const server::Setup& setup) {
  if (!shows_all_sessions(setup.loaded.policy.files)) return {};
  const std::string what = "with this policy a session can reach the files of all others";
  if (!asked.tenants_share)
    return fail(what, 0,
                "take a profile such as developer (--deny-* and --allow-* alone mean open), or say "
                "--no-tenant-isolation where all tokens belong to one person");
  print_warning(what + ": --no-tenant-isolation");
  return {};
}

Result<int> run_serve(const Arguments& arguments) {
  const Asked asked = TRY(parse(arguments));
  server::Setup setup = TRY(setup_of(asked, server::Tokens::read_or_make));
  for (const std::string& notice : notices(asked.flags, setup.loaded, setup.caller))
    print_warning(notice);
  TRY(check_tenants(asked, setup));
  server::ServeOptions options;
  options.reload = [asked] { return setup_of(asked, server::Tokens::read); };
  options.say = say;
  const char* notify_socket = std::getenv("NOTIFY_SOCKET");
  if (notify_socket != nullptr) options.notify_socket = notify_socket;
  // Without a place for it, REST and MCP can still decide.
  const Result<RuntimeFolder> folder = RuntimeFolder::hold();
  const std::string socket = TRY(socket_of(asked, setup.loaded.server, folder));
  options.addresses = TRY(addresses_of(setup.loaded.server, socket));
  if (folder) {
    options.approval_socket = folder->path() + "/approvals-" + std::to_string(::getpid()) + ".sock";
    options.key_folder = folder->path();
  } else {
    print_warning("belljar sessions and approvals cannot use this server: " +
                  folder.error().message());
  }
  setup.audit = TRY(open_audit(asked.audit, setup.loaded.policy));
  say("tokens are in " + setup.loaded.server.token_file);
  (void)std::signal(SIGPIPE, SIG_IGN);  // a client that went is an error of its own write
  TRY(server::serve(std::move(setup), std::move(options)));
  return 0;
}

}  // namespace

int serve(const Arguments& arguments) { return report(run_serve(arguments)); }

}  // namespace belljar::cli
