// python: code in a session, for people at a terminal and for scripts.
#include <unistd.h>

#include <boost/json.hpp>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <iterator>

#include "base/file.h"
#include "base/json.h"
#include "cli/configuration.h"
#include "cli/flags.h"
#include "cli/images.h"
#include "cli/notices.h"
#include "cli/prompt.h"
#include "cli/session_loop.h"
#include "session/report.h"

namespace belljar::cli {
namespace {

constexpr std::size_t kMaxCode = std::size_t{32} << 20;

struct Request {
  Loaded loaded;
  std::optional<PythonCall> call;  // none: ask for code
  bool json = false;
};

Result<std::string> read_code(const std::string& file) {
  if (file != "-") return read_regular(file, kMaxCode);
  std::string code(std::istreambuf_iterator<char>(std::cin), {});
  if (code.size() > kMaxCode) return fail("the code is longer than 32 MiB");
  return code;
}

// FILE, or - for what comes in, and its arguments.
Result<PythonCall> script(const Arguments& words) {
  PythonCall call;
  const std::string file = words.empty() ? "-" : words[0];
  call.code = TRY(read_code(file));
  call.file = file == "-" ? "<stdin>" : file;
  if (!words.empty()) call.arguments.assign(words.begin() + 1, words.end());
  return call;
}

Result<Request> parse(const Arguments& arguments) {
  Request request;
  std::string code, python;
  bool has_code = false;
  Parsed parsed = TRY(
      parse_flags(arguments, {{.name = "json", .seen = &request.json},
                              {.name = "python", .value = &python},
                              {.name = "code", .letter = 'c', .value = &code, .seen = &has_code}}));
  if (has_code && !parsed.rest.empty())
    return fail("unexpected argument " + parsed.rest[0], 0,
                "belljar python [FLAGS] [-c CODE | FILE [ARGUMENTS] | -]");
  request.loaded = TRY(load_here(parsed.settings));
  if (!python.empty())
    request.loaded.session.python =
        python.find('/') == python.npos ? python : std::filesystem::absolute(python).string();
  for (const std::string& notice : notices(parsed.settings, request.loaded, this_caller()))
    print_warning(notice);
  const bool asks = parsed.rest.empty() && ::isatty(0) != 0 && !request.json;
  if (has_code) {
    request.call.emplace();
    request.call->code = code;
  } else if (!asks) {
    request.call = TRY(script(parsed.rest));
  }
  return request;
}

bool asked_to_exit(const PythonResult& result) { return result.exit_code && !result.state_lost; }

// As Python ends: silently with a number, with a text on stderr and 1.
void print_exception(TerminalSession& session, const PythonResult& result) {
  if (!result.exception) return;
  const std::string& message = result.exception->message;
  if (!asked_to_exit(result))
    session.print(OutputStream::err, result.exception->traceback);
  else if (message.find_first_not_of("-0123456789") != message.npos)
    session.print(OutputStream::err, message + "\n");
}

// What has not been printed while it came.
Status print_result(TerminalSession& session, const PythonResult& result, const Policy& policy,
                    ImageFolder& images) {
  if (result.result) session.print(OutputStream::out, *result.result + "\n");
  for (const std::string& image : result.images) TRY(images.show(image));
  print_exception(session, result);
  print_notes(result, policy);
  return {};
}

int exit_code(const PythonResult& result) {
  if (result.status == CallStatus::timeout) return 124;
  if (result.exit_code) return *result.exit_code;
  if (result.interrupted) return 128 + SIGINT;
  return result.status == CallStatus::success ? 0 : 1;
}

Result<int> converse(TerminalSession& session, const Policy& policy) {
  ImageFolder images;
  Prompt prompt("python");
  while (std::optional<std::string> code = prompt.read_python()) {
    PythonCall call;
    call.code = std::move(*code);
    const PythonResult result = TRY(session.python(std::move(call)));
    TRY(print_result(session, result, policy, images));
    if (asked_to_exit(result)) return *result.exit_code;
  }
  return 0;
}

Result<int> run_python(const Arguments& arguments) {
  const Request request = TRY(parse(arguments));
  const Policy& policy = request.loaded.policy;
  const std::unique_ptr<TerminalSession> session = TRY(TerminalSession::start(request.loaded));
  if (!request.call) return converse(*session, policy);
  session->set_streaming(!request.json);
  PythonResult result = TRY(session->python(*request.call));
  if (request.json) {
    write_all(1, pretty(session::to_json(result)));
    return exit_code(result);
  }
  if (!request.call->file.empty()) result.result.reset();  // a script prints what it prints
  ImageFolder images;
  TRY(print_result(*session, result, policy, images));
  return exit_code(result);
}

}  // namespace

int python(const Arguments& arguments) { return report(run_python(arguments)); }

}  // namespace belljar::cli
