// python: code in a session, for people at a terminal and for scripts.
#include <unistd.h>

#include <boost/json.hpp>
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
  std::optional<std::string> code;  // none: ask for it
  bool json = false;
};

Result<std::string> read_code(const std::string& file) {
  if (file != "-") return read_regular(file, kMaxCode);
  std::string code(std::istreambuf_iterator<char>(std::cin), {});
  if (code.size() > kMaxCode) return fail("the code is longer than 32 MiB");
  return code;
}

Result<Request> parse(const Arguments& arguments) {
  Request request;
  std::string code;
  bool has_code = false;
  Parsed parsed = TRY(
      parse_flags(arguments, {{.name = "json", .seen = &request.json},
                              {.name = "code", .letter = 'c', .value = &code, .seen = &has_code}}));
  if (parsed.rest.size() > 1 || (has_code && !parsed.rest.empty()))
    return fail("unexpected argument " + parsed.rest.back(), 0,
                "belljar python [FLAGS] [-c CODE | FILE | -]");
  request.loaded = TRY(load_here(parsed.settings));
  for (const std::string& notice : notices(parsed.settings, request.loaded, this_caller()))
    print_warning(notice);
  const bool asks = parsed.rest.empty() && ::isatty(0) != 0 && !request.json;
  if (has_code)
    request.code = code;
  else if (!asks)
    request.code = TRY(read_code(parsed.rest.empty() ? "-" : parsed.rest[0]));
  return request;
}

// What has not been printed while it came.
void print_result(const PythonResult& result, ImageFolder& images) {
  if (result.result) write_all(1, *result.result + "\n");
  for (const std::string& image : result.images) images.show(image);
  if (result.exception) write_all(2, result.exception->traceback);
  for (const std::string& note : result.notes) print_warning(note);
}

int exit_code(const PythonResult& result) {
  if (result.status == CallStatus::timeout) return 124;
  return result.status == CallStatus::success ? 0 : 1;
}

Result<int> converse(TerminalSession& session) {
  ImageFolder images;
  Prompt prompt("python");
  while (std::optional<std::string> code = prompt.read_python()) {
    Result<PythonResult> result = session.python(*code);
    if (!result) return std::unexpected(result.error());
    print_result(*result, images);
  }
  return 0;
}

Result<int> run_python(const Arguments& arguments) {
  const Request request = TRY(parse(arguments));
  const std::unique_ptr<TerminalSession> session = TRY(TerminalSession::start(request.loaded));
  if (!request.code) return converse(*session);
  session->set_streaming(!request.json);
  const PythonResult result = TRY(session->python(*request.code));
  ImageFolder images;
  if (request.json)
    write_all(1, pretty(session::to_json(result)));
  else
    print_result(result, images);
  return exit_code(result);
}

}  // namespace

int python(const Arguments& arguments) { return report(run_python(arguments)); }

}  // namespace belljar::cli
