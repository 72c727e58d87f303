// One command in a jar of its own. Nobody serves it but who waits for it, so that a program
// that only runs commands has no thread of ours.
#include <optional>

#include "abi.h"
#include "launcher/live.h"
#include "plan/outcome_json.h"
#include "plan/workdir.h"
#include "request.h"

namespace belljar::python {
namespace {

namespace json = boost::json;
using launcher::Live;

struct Run {
  Policy policy;
  std::shared_ptr<Live> live;
  std::optional<Outcome> outcome;
  std::optional<Error> lost;
};

std::expected<std::unique_ptr<Run>, json::object> start(const char* request, std::size_t size,
                                                        std::string input) {
  auto ours = [](const Error& error) { return std::unexpected(error_json("failed", error)); };
  Result<json::object> read = parse(request, size);
  if (!read) return ours(read.error());
  const Caller caller = read_caller(*read);
  Result<Asked> asked = read_policy(*read, caller);
  if (!asked) return std::unexpected(error_json("policy", asked.error()));
  Result<Command> command = read_command(*read, std::move(input));
  if (!command) return ours(command.error());
  if (Status fits = check_workdir(asked->settings, asked->policy, caller); !fits)
    return ours(fits.error());
  auto run = std::make_unique<Run>();
  run->policy = std::move(asked->policy);
  Host host = assume_host();
  Result<std::shared_ptr<Live>> live = Live::start(run->policy, caller, host, &*command);
  if (!live) return std::unexpected(launch_error_json(live.error(), run->policy, caller));
  run->live = std::move(*live);
  return run;
}

}  // namespace
}  // namespace belljar::python

using namespace belljar;
using namespace belljar::python;

void* belljar_py_run_start(const char* request, size_t size, const char* input, size_t input_size,
                           void** run, size_t* error_size) {
  auto started = start(request, size, std::string(input, input_size));
  if (!started) return give(started.error(), error_size);
  *run = started->release();
  return nullptr;
}

int belljar_py_run_wait(void* handle, int milliseconds) {
  Run& run = *static_cast<Run*>(handle);
  if (run.outcome) return 1;
  if (run.lost) return -1;
  Result<std::optional<Outcome>> news = run.live->wait(1, std::chrono::milliseconds(milliseconds));
  if (!news) {
    run.lost = news.error();
    return -1;
  }
  run.outcome = std::move(*news);
  return run.outcome ? 1 : 0;
}

void* belljar_py_run_outcome(void* handle, size_t* answer_size, const char** out, size_t* out_size,
                             const char** err, size_t* err_size) {
  const Run& run = *static_cast<Run*>(handle);
  if (!run.outcome)
    return give(error_json("failed", run.lost.value_or(Error{.what = "it has not ended yet"})),
                answer_size);
  const Outcome& outcome = *run.outcome;
  *out = outcome.out.data();
  *out_size = outcome.out.size();
  *err = outcome.err.data();
  *err_size = outcome.err.size();
  json::object report = outcome_to_json(run.policy, outcome);
  report["stdout_dropped"] = outcome.out_dropped;
  report["stderr_dropped"] = outcome.err_dropped;
  report["exec_error"] = outcome.exec_error;
  return give(report, answer_size);
}

void belljar_py_run_end(void* handle) { delete static_cast<Run*>(handle); }
