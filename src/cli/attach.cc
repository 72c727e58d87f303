#include "cli/attach.h"

#include <unistd.h>

#include <boost/json.hpp>
#include <csignal>
#include <cstdio>

#include "base/file.h"
#include "base/json_field.h"
#include "base/printable.h"
#include "cli/images.h"
#include "cli/prompt.h"
#include "cli/session_loop.h"
#include "server/message.h"

namespace belljar::cli {
namespace {

namespace json = boost::json;

std::int64_t exit_code_of(const json::object& result) {
  const json::value* value = result.if_contains("exit_code");
  return value != nullptr && value->is_int64() ? value->get_int64() : 0;
}

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
  Attached(const LocalHttp& server, const std::string& id, Prompted prompted)
      : server_(server),
        path_("/v1/sessions/" + server::percent_encode(id)),
        shell_(prompted == Prompted::shell),
        prompt_(shell_ ? "shell" : "python") {}

  Result<int> converse() {
    std::fprintf(stderr,
                 "The session's %s. ^D or exit leaves, and the session goes on; ^C stops only what "
                 "you began here.\n",
                 shell_ ? "shell" : "Python");
    while (std::optional<std::string> said =
               shell_ ? prompt_.read_command() : prompt_.read_python()) {
      if (means_to_leave(*said)) break;
      TRY(run(*said));
    }
    return 0;
  }

 private:
  // In the shell it would end one that somebody else is using; in Python it would do nothing.
  bool means_to_leave(std::string_view said) const {
    said.remove_prefix(std::min(said.find_first_not_of(" \t"), said.size()));
    said = said.substr(0, said.find_last_not_of(" \t;\n") + 1);
    if (!shell_) return said == "exit" || said == "quit" || said == "exit()" || said == "quit()";
    if (said == "exit" || said == "logout") return true;
    constexpr std::string_view kWithCode = "exit ";
    return said.starts_with(kWithCode) &&
           said.find_first_not_of("0123456789", kWithCode.size()) == said.npos;
  }

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
        [&](const std::string& call) {
          const json::object only{{"call", call}};
          (void)server_.request("POST", path_ + "/interrupt", &only);  // it may have ended
        }));
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
    if (const std::int64_t code = exit_code_of(result); shell_ && code != 0)
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
  bool shell_;
  Prompt prompt_;
  ImageFolder images_;
  TerminalFilter out_, err_;
};

}  // namespace

Result<int> attach(const LocalHttp& server, const std::string& id, Prompted prompted) {
  const LocalHttp::Answer there =
      TRY(server.request("GET", "/v1/sessions/" + server::percent_encode(id)));
  if (there.status != 200) return error_of(there);
  return Attached(server, id, prompted).converse();
}

}  // namespace belljar::cli
