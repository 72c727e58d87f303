#include "server/server.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include "base/descriptor_limit.h"
#include "server/approval_socket.h"

namespace belljar::server {
namespace {

// Calls that an ended engine answers need a moment to be written out.
constexpr std::chrono::seconds kLastWords{1};
constexpr std::chrono::milliseconds kBetweenLongTurns{100};

// systemd's protocol: one datagram. Who is not started by it has no socket.
void notify(const std::string& socket_path, std::string_view state) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_path.empty() || socket_path.size() >= sizeof address.sun_path) return;
  std::memcpy(address.sun_path, socket_path.data(), socket_path.size());
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';
  const Fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_path.size());
  const void* untyped = &address;
  // Whether anybody hears it does not change what we do.
  (void)::sendto(socket.get(), state.data(), state.size(), MSG_NOSIGNAL,
                 static_cast<const sockaddr*>(untyped), size);
}

// What the limit on open files leaves when every session has what it needs: strangers can hold
// connections, and must not hold those.
std::size_t connections_of(const Loaded& loaded) {
  constexpr rlim_t kOurs = 64, kOfSession = 32;
  struct rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) < 0) return loaded.server.max_connections;
  const rlim_t kept = std::min(kOurs + loaded.session.max_sessions * kOfSession,
                               limit.rlim_cur - limit.rlim_cur / 4);
  return std::min<std::size_t>(loaded.server.max_connections, limit.rlim_cur - kept);
}

HttpLimits limits_of(const Loaded& loaded) {
  const ServerSettings& settings = loaded.server;
  return {.header_bytes = HttpLimits{}.header_bytes,
          .connections = connections_of(loaded),
          .idle = settings.idle_timeout,
          .header = settings.header_timeout,
          .body = settings.body_timeout,
          .write = settings.write_timeout};
}

struct Running {
  Loop loop;
  asio::signal_set stop_signals{loop, SIGTERM, SIGINT};
  asio::signal_set reload_signals{loop, SIGHUP};
  std::shared_ptr<App> app;
  std::unique_ptr<HttpServer> http;
  ServeOptions options;
  std::vector<SocketFile> socket_files;
  Clock::time_point told_of_long_turn{};
  std::vector<KeyFile> key_files;

  Status listen();
  void wait_for_stop();
  void wait_for_reload();
  void tell_long_turn(LoopMeter::Time time, std::string_view about);
  void end();
  static Async<void> stop(Running& self);
};

Status Running::listen() {
  for (const ListenAddress& address : options.addresses) {
    Fd listener = TRY(open_listener(address));
    if (address.is_local()) {
      socket_files.emplace_back(address.path);
      if (!options.key_folder.empty())
        key_files.push_back(TRY(app->owner_key().put(options.key_folder, address.path)));
    }
    options.say("listening on " + listener_name(listener.get(), address));
    http->listen(std::move(listener));
  }
  return {};
}

void Running::wait_for_stop() {
  stop_signals.async_wait([this](boost::system::error_code error, int) {
    if (error) return;
    options.say("stopping; once more to stop at once");
    notify(options.notify_socket, "STOPPING=1");
    begin(loop, stop(*this));
    stop_signals.async_wait([this](boost::system::error_code again, int) {
      if (!again) loop.stop();
    });
  });
}

Async<void> Running::stop(Running& self) {
  self.app->drain();
  self.http->drain();
  const auto patience = self.app->setup().loaded.server.drain_timeout;
  const bool in_time = co_await self.http->drained(Clock::now() + patience);
  self.end();
  if (!in_time) co_await self.http->drained(Clock::now() + kLastWords);
  self.loop.stop();
}

void Running::end() {
  if (const std::optional<std::string> left = app->end())
    options.say("guests left more than could be removed in time; the next start removes " + *left);
}

// Not each of many.
void Running::tell_long_turn(LoopMeter::Time time, std::string_view about) {
  const Clock::time_point now = Clock::now();
  if (now - told_of_long_turn < kBetweenLongTurns) return;
  told_of_long_turn = now;
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
  options.say("everybody has waited for " + std::to_string(ms) + " ms while one thing was done" +
              (about.empty() ? "" : ": " + std::string(about)));
}

void Running::wait_for_reload() {
  reload_signals.async_wait([this](boost::system::error_code error, int) {
    if (error) return;
    notify(options.notify_socket, "RELOADING=1");
    Result<Setup> fresh = options.reload();
    if (fresh) {
      http->set_limits(limits_of(fresh->loaded));
      app->reload(std::move(*fresh));
      options.say("tokens, hosts, origins, limits and permissions are read again");
    } else {
      options.say("nothing is changed: " + fresh.error().message());
    }
    notify(options.notify_socket, "READY=1");
    wait_for_reload();
  });
}

}  // namespace

Status serve(Setup setup, ServeOptions options) {
  raise_descriptor_limit();
  Running self;
  self.options = std::move(options);
  self.app = TRY(App::make(self.loop, std::move(setup)));
  App* app = self.app.get();
  HttpHandler handler{.admit = [app](Request& request) { return app->admit(request); },
                      .hold = &App::hold,
                      .answer = [app](Request request) { return app->answer(std::move(request)); }};
  self.http =
      std::make_unique<HttpServer>(self.loop, limits_of(app->setup().loaded), std::move(handler));
  app->set_http(self.http.get());
  if (const std::size_t most = connections_of(app->setup().loaded);
      most < app->setup().loaded.server.max_connections)
    self.options.say("at most " + std::to_string(most) +
                     " connections: the limit on open files (ulimit -Hn) keeps the rest for "
                     "sessions");
  TRY(self.listen());
  std::unique_ptr<ApprovalSocket> approvals;
  if (!self.options.approval_socket.empty())
    approvals =
        TRY(ApprovalSocket::listen(self.loop, app->dispatcher().approvals(), app->owner_key(),
                                   self.options.key_folder, self.options.approval_socket));
  self.wait_for_stop();
  self.wait_for_reload();
  self.options.say("ready");
  notify(self.options.notify_socket, "READY=1");
  app->meter().on_long = [&self](LoopMeter::Time time, std::string_view about) {
    self.tell_long_turn(time, about);
  };
  app->meter().run(self.loop);
  approvals.reset();
  self.app->drain();
  self.end();
  app->set_http(nullptr);
  self.http.reset();
  return {};
}

}  // namespace belljar::server
