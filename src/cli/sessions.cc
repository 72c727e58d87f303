// sessions: those of a running `belljar serve`, listed, used and ended.
#include <boost/json.hpp>
#include <cstdio>

#include "base/file.h"
#include "base/json.h"
#include "base/json_field.h"
#include "base/printable.h"
#include "cli/attach.h"
#include "cli/flags.h"
#include "cli/local_http.h"
#include "cli/server_places.h"
#include "cli/session_loop.h"
#include "server/message.h"
#include "session/engine.h"

namespace belljar::cli {
namespace {

namespace json = boost::json;

std::int64_t number_of(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  boost::system::error_code error;
  const std::int64_t number = value != nullptr && value->is_number()
                                  ? value->to_number<std::int64_t>(error)
                                  : std::int64_t{0};
  return error ? 0 : number;
}

std::string idle_words(const json::object& session) {
  const json::value* busy = session.if_contains("busy");
  if (busy != nullptr && busy->is_bool() && busy->get_bool()) return "busy";
  const std::int64_t seconds = number_of(session, "idle_ms") / 1000;
  if (seconds < 120) return "idle " + std::to_string(seconds) + " s";
  return "idle " + std::to_string(seconds / 60) + " min";
}

Result<json::array> sessions_of(const LocalHttp& server) {
  const LocalHttp::Answer answer = TRY(server.request("GET", "/v1/sessions"));
  if (answer.status != 200) return error_of(answer);
  boost::system::error_code error;
  const json::value value = json::parse(answer.body, error);
  const json::object* object = error ? nullptr : value.if_object();
  const json::value* all = object != nullptr ? object->if_contains("sessions") : nullptr;
  if (all == nullptr || !all->is_array()) return fail("the server's answer makes no sense");
  json::array sessions;
  for (const json::value& one : all->get_array()) {
    if (!one.is_object()) continue;
    json::object session = one.get_object();
    session["socket"] = server.socket();
    sessions.push_back(std::move(session));
  }
  return sessions;
}

// Of all servers that can be asked, and an error about each that cannot.
struct Listed {
  json::array sessions;
  std::vector<Error> lost;
};

Listed listed(const std::vector<std::string>& sockets) {
  Listed all;
  for (const std::string& socket : sockets) {
    const Result<json::array> sessions = sessions_of(LocalHttp(socket));
    if (!sessions) all.lost.push_back(sessions.error());
    if (sessions) all.sessions.insert(all.sessions.end(), sessions->begin(), sessions->end());
  }
  return all;
}

void print(const json::object& session, bool with_socket) {
  std::printf("%-36s  %-12s  %-12s  %-12s  %6lld MB%s\n", printable(text_of(session, "id")).c_str(),
              printable(text_of(session, "owner")).c_str(),
              printable(text_of(session, "profile")).c_str(), idle_words(session).c_str(),
              static_cast<long long>(number_of(session, "memory_kb") / 1024),
              with_socket ? ("  " + printable(text_of(session, "socket"))).c_str() : "");
}

Result<int> list(const std::vector<std::string>& sockets, bool as_json) {
  const Listed all = listed(sockets);
  if (sockets.size() == 1 && !all.lost.empty()) return std::unexpected(all.lost[0]);
  if (as_json) write_all(1, pretty(all.sessions));
  if (!as_json && all.sessions.empty()) std::puts("There are no sessions.");
  for (const json::value& one : all.sessions)
    if (!as_json) print(one.get_object(), sockets.size() > 1);
  std::fflush(stdout);
  for (const Error& error : all.lost) print_error(error);
  return all.lost.empty() ? 0 : 1;
}

constexpr const char* kWhich =
    "`belljar sessions list` shows them; another's session is NAME@TOKEN";

// The socket of the server that has the session.
Result<std::string> socket_with(const std::vector<std::string>& sockets, const std::string& id) {
  if (sockets.size() == 1) return sockets[0];
  const Listed all = listed(sockets);
  for (const Error& error : all.lost) print_error(error);
  std::vector<std::string> found;
  for (const json::value& one : all.sessions)
    if (text_of(one.get_object(), "id") == id) found.push_back(text_of(one.get_object(), "socket"));
  if (found.empty()) return fail("there is no such session", 0, kWhich);
  if (found.size() > 1)
    return fail("several servers have a session " + id, 0, "name one: --socket=" + found[0]);
  return found[0];
}

Result<int> kill(const LocalHttp& server, const std::string& id) {
  const LocalHttp::Answer answer =
      TRY(server.request("DELETE", "/v1/sessions/" + server::percent_encode(id)));
  if (answer.status != 204) return error_of(answer);
  return 0;
}

Result<int> run_sessions(const Arguments& arguments) {
  std::string socket;
  bool as_json = false;
  bool shell = false;
  const std::vector<Flag> own = {{.name = "socket", .value = &socket},
                                 {.name = "shell", .seen = &shell},
                                 {.name = "json", .seen = &as_json}};
  const Arguments rest = TRY(parse_words(arguments, own));
  const auto wrong = fail("wrong arguments", 0, "belljar sessions list | attach ID | kill ID");
  if (rest.empty() || rest.size() > 2) return wrong;
  std::vector<std::string> sockets = {socket};
  if (socket.empty()) sockets = TRY(serve_sockets());
  if (sockets.empty()) sockets = {TRY(runtime_folder()) + "/" + kServeSocket};
  if (rest[0] == "list" && rest.size() == 1 && !shell) return list(sockets, as_json);
  const bool attaches = rest[0] == "attach";
  if (rest.size() != 2 || as_json || (!attaches && (rest[0] != "kill" || shell))) return wrong;
  TRY(session::check_id(rest[1]));
  const LocalHttp server(TRY(socket_with(sockets, rest[1])));
  if (!attaches) return kill(server, rest[1]);
  return attach(server, rest[1], shell ? Prompted::shell : Prompted::python);
}

}  // namespace

int sessions(const Arguments& arguments) { return report(run_sessions(arguments)); }

}  // namespace belljar::cli
