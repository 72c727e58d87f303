// sessions: those of a running `belljar serve`, listed, used and ended.
#include <unistd.h>

#include <boost/json.hpp>
#include <csignal>
#include <cstdio>

#include "base/json.h"
#include "base/printable.h"
#include "cli/flags.h"
#include "cli/images.h"
#include "cli/local_http.h"
#include "cli/prompt.h"
#include "cli/server_places.h"
#include "cli/session_loop.h"

namespace belljar::cli {
namespace {

namespace json = boost::json;

std::string text_of(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

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

Result<int> list(const LocalHttp& server, bool as_json) {
  const LocalHttp::Answer answer = TRY(server.request("GET", "/v1/sessions"));
  if (answer.status != 200) return error_of(answer);
  boost::system::error_code error;
  const json::value value = json::parse(answer.body, error);
  const json::object* object = error ? nullptr : value.if_object();
  const json::value* all = object != nullptr ? object->if_contains("sessions") : nullptr;
  if (all == nullptr || !all->is_array()) return fail("the server's answer makes no sense");
  if (as_json) {
    write_all(1, pretty(*all));
    return 0;
  }
  if (all->get_array().empty()) std::puts("There are no sessions.");
  for (const json::value& one : all->get_array()) {
    if (!one.is_object()) continue;
    const json::object& session = one.get_object();
    std::printf("%-36s  %-12s  %-12s  %-12s  %6lld MB\n", printable(text_of(session, "id")).c_str(),
                printable(text_of(session, "owner")).c_str(),
                printable(text_of(session, "profile")).c_str(), idle_words(session).c_str(),
                static_cast<long long>(number_of(session, "memory_kb") / 1024));
  }
  return 0;
}

Result<int> kill(const LocalHttp& server, const std::string& id) {
  const LocalHttp::Answer answer = TRY(server.request("DELETE", "/v1/sessions/" + id));
  if (answer.status != 204) return error_of(answer);
  return 0;
}

// ---- attach -------------------------------------------------------------------

// While a call runs ^C only wakes who waits for its answer, who then has it interrupted. It is
// kept until somebody waits, or one that came just before would be lost.
class WakesUp {
 public:
  WakesUp() {
    sigset_t interrupt;
    ::sigemptyset(&interrupt);
    ::sigaddset(&interrupt, SIGINT);
    ::pthread_sigmask(SIG_BLOCK, &interrupt, &mask_before_);
    struct sigaction wakes{};
    wakes.sa_handler = [](int) {};
    (void)::sigaction(SIGINT, &wakes, &before_);  // both are right
  }
  WakesUp(const WakesUp&) = delete;
  WakesUp& operator=(const WakesUp&) = delete;
  ~WakesUp() {
    ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
    (void)::sigaction(SIGINT, &before_, nullptr);
  }

 private:
  sigset_t mask_before_{};
  struct sigaction before_{};
};

class Attached {
 public:
  Attached(const LocalHttp& server, std::string id, bool shell)
      : server_(server),
        path_("/v1/sessions/" + std::move(id)),
        prompt_(shell ? "shell" : "python"),
        shell_(shell) {}

  Result<int> converse() {
    while (std::optional<std::string> said =
               shell_ ? prompt_.read_command() : prompt_.read_python())
      TRY(run(*said));
    return 0;
  }

 private:
  Status run(const std::string& said) {
    json::object body;
    if (shell_)
      body["commands"] = json::array{said};
    else
      body["code"] = said;
    out_ = err_ = {};
    Status shown;
    const WakesUp wakes;
    const LocalHttp::Answer answer = TRY(server_.stream(
        path_ + (shell_ ? "/shell" : "/python"), body,
        [&](std::string_view event, const json::object& data) { shown = hear(event, data); },
        [&] { (void)server_.request("POST", path_ + "/interrupt"); }));  // or it goes on
    if (answer.status != 200) return error_of(answer);
    return shown;
  }

  Status hear(std::string_view event, const json::object& data) {
    if (event == "output")
      print(text_of(data, "stream") == "stderr" ? 2 : 1, text_of(data, "text"));
    if (event == "image" && text_of(data, "mime") == "image/png")
      return images_.show(text_of(data, "base64"));
    if (event == "agentic_tool_approval_required")
      print_warning("this call waits for approval; `belljar approvals` decides");
    if (event == "error") {
      const json::value* error = data.if_contains("error");
      const json::object& about =
          error != nullptr && error->is_object() ? error->get_object() : data;
      print_warning(printable(text_of(about, "message")));
    }
    if (event == "result") print_result(data);
    return {};
  }

  void print_result(const json::object& result) {
    if (const std::string value = text_of(result, "result"); !value.empty()) print(1, value + "\n");
    const json::value* exception = result.if_contains("exception");
    if (exception != nullptr && exception->is_object())
      print(2, text_of(exception->get_object(), "traceback"));
    if (const std::int64_t code = number_of(result, "exit_code"); shell_ && code != 0)
      print_warning("exit code " + std::to_string(code));
    if (text_of(result, "status") == "timeout") print_warning("its time was over");
    const json::value* notes = result.if_contains("notes");
    if (notes == nullptr || !notes->is_array()) return;
    for (const json::value& note : notes->get_array())
      if (note.is_string()) print_warning(printable(std::string(note.get_string())));
  }

  // What a guest made, as a terminal may have it.
  void print(int fd, const std::string& text) {
    TerminalFilter& filter = fd == 1 ? out_ : err_;
    write_all(fd, ::isatty(fd) != 0 ? filter.pass(text) : text);
  }

  const LocalHttp& server_;
  std::string path_;
  Prompt prompt_;
  bool shell_;
  ImageFolder images_;
  TerminalFilter out_, err_;
};

Result<int> attach(const LocalHttp& server, const std::string& id, bool shell) {
  const LocalHttp::Answer there = TRY(server.request("GET", "/v1/sessions/" + id));
  if (there.status != 200) return error_of(there);
  return Attached(server, id, shell).converse();
}

bool is_id(std::string_view text) {
  return !text.empty() &&
         text.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:") == text.npos;
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
  if (socket.empty()) socket = TRY(runtime_folder()) + "/" + kServeSocket;
  const LocalHttp server(socket);
  if (rest[0] == "list" && rest.size() == 1 && !shell) return list(server, as_json);
  if (rest.size() != 2 || as_json) return wrong;
  if (!is_id(rest[1])) return fail(printable(rest[1]) + " is no session id");
  if (rest[0] == "attach") return attach(server, rest[1], shell);
  if (rest[0] == "kill" && !shell) return kill(server, rest[1]);
  return wrong;
}

}  // namespace

int sessions(const Arguments& arguments) { return report(run_sessions(arguments)); }

}  // namespace belljar::cli
