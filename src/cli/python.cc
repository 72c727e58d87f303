// python: code in a session, for people at a terminal and for scripts.
#include <unistd.h>

#include <boost/json.hpp>
#include <iostream>
#include <iterator>

#include "base/file.h"
#include "base/json.h"
#include "base/syscall.h"
#include "cli/configuration.h"
#include "cli/exec.h"
#include "cli/flags.h"
#include "cli/notices.h"
#include "session/engine.h"
#include "session/report.h"

namespace belljar::cli {
namespace {

constexpr std::size_t kMaxCode = std::size_t{32} << 20;
constexpr const char* kSession = "terminal";

struct Request {
  Loaded loaded;
  std::string code;
  bool json = false;
};

Result<std::string> read_code(const Arguments& rest) {
  if (rest.size() > 1)
    return fail("unexpected argument " + rest[1], 0, "belljar python [FLAGS] [-c CODE | FILE | -]");
  if (rest.empty() || rest[0] == "-") {
    std::string code(std::istreambuf_iterator<char>(std::cin), {});
    if (code.size() > kMaxCode) return fail("the code is longer than 32 MiB");
    return code;
  }
  return read_regular(rest[0], kMaxCode);
}

Result<Request> parse(const Arguments& arguments) {
  Request request;
  std::string code;
  bool has_code = false;
  Parsed parsed = TRY(
      parse_flags(arguments, {{.name = "json", .seen = &request.json},
                              {.name = "code", .letter = 'c', .value = &code, .seen = &has_code}}));
  request.loaded = TRY(load_here(parsed.settings));
  for (const std::string& notice : notices(parsed.settings, request.loaded, this_caller()))
    print_warning(notice);
  request.code = has_code ? code : TRY(read_code(parsed.rest));
  return request;
}

void write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t n = retry([&] { return ::write(fd, bytes.data(), bytes.size()); });
    if (n <= 0) return;  // nobody reads any more; the exit code still tells
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

void print_result(const PythonResult& result) {
  if (result.result) write_all(1, *result.result + "\n");
  if (result.exception) write_all(2, result.exception->traceback);
  for (const std::string& note : result.notes) print_warning(note);
}

int exit_code(const PythonResult& result) {
  if (result.status == CallStatus::timeout) return 124;
  return result.status == CallStatus::success ? 0 : 1;
}

Result<int> run_python(const Arguments& arguments) {
  Request request = TRY(parse(arguments));
  const Caller caller = this_caller();
  TRY(check_workdir(request.loaded, caller));
  Loop loop;
  const Policy& policy = request.loaded.policy;
  SessionSettings settings;
  settings.workdir = policy.files.workdir;
  if (policy.limits.timeout)
    settings.python_timeout = settings.max_timeout = *policy.limits.timeout;
  const std::unique_ptr<session::Engine> engine =
      TRY(session::Engine::make(loop, policy, caller, settings));
  PythonCall call{.code = std::move(request.code), .timeout = {}, .outputs = {}, .on_output = {}};
  if (!request.json)
    call.on_output = [](OutputStream stream, std::string_view bytes) {
      write_all(stream == OutputStream::out ? 1 : 2, bytes);
    };
  std::optional<Result<PythonResult>> result;
  auto work = [&]() -> Async<void> {
    result = co_await engine->python(kSession, std::move(call));
    loop.stop();
  };
  begin(loop, work());
  loop.run();
  if (!*result) return std::unexpected(result->error());
  if (request.json)
    write_all(1, pretty(session::to_json(**result)));
  else
    print_result(**result);
  return exit_code(**result);
}

}  // namespace

int python(const Arguments& arguments) { return report(run_python(arguments)); }

}  // namespace belljar::cli
