// Sessions: persistent Python and shell in one jar.
//
// What a session is asked for and what it answers: plain values. A guest can put anything
// into its own answers (it has the interpreter in its hands), and nothing into anybody
// else's.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "belljar/caller.h"
#include "belljar/error.h"
#include "belljar/policy.h"

namespace belljar {

struct SessionSettings {
  std::string python = "python3";  // a name in the guest's PATH, or a path
  std::string shell = "bash";
  std::chrono::milliseconds python_timeout = std::chrono::seconds(60);
  std::chrono::milliseconds shell_timeout = std::chrono::seconds(600);
  std::chrono::milliseconds max_timeout = std::chrono::seconds(600);  // that a call may ask for
  std::chrono::milliseconds grace = std::chrono::seconds(3);  // between asking to stop and killing
  std::string workdir;  // that all sessions share; empty: each has a fresh one
  std::chrono::milliseconds idle = std::chrono::hours(1);  // after which a session is ended
  std::chrono::milliseconds reap_every = std::chrono::minutes(5);
  std::size_t max_sessions = 64;
  std::optional<std::uint64_t> max_total_memory_mb;   // of all sessions together
  std::size_t max_output = std::size_t{1} << 20;      // kept of each stream of a call
  std::size_t max_file = std::size_t{1} << 20;        // of a file whose content is returned
  std::size_t max_file_total = std::size_t{8} << 20;  // of all of a call
  std::vector<std::string> preload = {"numpy", "pandas", "matplotlib.pyplot"};  // if installed
  bool operator==(const SessionSettings&) const = default;
};

enum class CallStatus {
  success,
  error,    // an exception, an exit code, a worker that died
  timeout,  // its time was over
};
std::string_view name(CallStatus status);

// A representation of a value: a MIME type and the value in it. Images are base64.
using Representations = std::vector<std::pair<std::string, std::string>>;

struct Exception {
  std::string type;
  std::string message;
  std::string traceback;
  bool operator==(const Exception&) const = default;
};

// A file of the workdir that is new or has changed.
struct SessionFile {
  std::string name;  // relative to the workdir
  std::uint64_t size = 0;
  std::string mime;
  bool has_content = false;  // it was small enough
  bool is_text = false;      // else `content` is bytes
  std::string content;
  bool operator==(const SessionFile&) const = default;
};

// What every call says about how it went.
struct CallReport {
  CallStatus status = CallStatus::success;
  std::string out, err;                    // UTF-8; head and tail where it was too much
  std::uint64_t out_cut = 0, err_cut = 0;  // bytes left out of those
  std::vector<SessionFile> files;
  bool more_files = false;  // than are listed
  std::string working_directory;
  std::chrono::microseconds time{};
  bool interrupted = false;  // it was asked to stop
  bool killed = false;       // it did not, and was made to
  bool state_lost = false;   // the next call finds a fresh interpreter or shell
  std::vector<std::string> limits_hit;
  std::vector<std::string> notes;  // what else a person should know: a fresh start, a death
};

struct PythonResult : CallReport {
  // "warm" or "cold": an interpreter was started for this call, by a fork of one that has
  // imported everything, or from nothing. Empty: it was there.
  std::string started;
  std::optional<Exception> exception;
  std::optional<std::string> result;  // repr of the last expression
  std::string result_type;
  Representations result_data;
  std::vector<Representations> displays;
  std::vector<std::string> images;        // PNG in base64
  std::vector<std::string> video_frames;  // the same
  // What a shell would say of a program: it asked to exit, or its interpreter has ended.
  std::optional<int> exit_code;
};

enum class OutputStream { out, err };
// Hears output while it comes, as bytes.
using OnOutput = std::function<void(OutputStream, std::string_view)>;

struct PythonCall {
  std::string code;
  // Of a script: its path as the guest sees it, which is `__file__` and whose folder is
  // searched for modules; and what follows it in `sys.argv`. Empty: a cell of a notebook.
  std::string file;
  std::vector<std::string> arguments;
  std::optional<std::chrono::milliseconds> timeout;
  std::vector<std::string> outputs;  // files to return even if they have not changed
  // A new file in the workdir, to which all output goes, both streams as they came. Ends
  // where the policy's largest file does.
  std::optional<std::string> output_file;
  OnOutput on_output;
  // Whether so many bytes may be kept of what the code shows, in all. Without it: what one call may
  // have. What is not kept is noted.
  std::function<bool(std::size_t bytes)> may_keep;
};

struct ShellCall {
  std::vector<std::string> commands;
  bool one_shot = false;  // in a shell of its own, whose state nobody keeps
  std::optional<std::chrono::milliseconds> timeout;  // of all of them together
  std::optional<std::size_t> max_output;
  std::vector<std::string> outputs;
  std::optional<std::string> output_file;
  OnOutput on_output;
};

struct RunCommand {
  std::string command;
  std::optional<int> exit_code;  // none: it was not run to its end
  bool operator==(const RunCommand&) const = default;
};

struct ShellResult : CallReport {
  std::vector<RunCommand> commands;
  int exit_code = 0;  // of the last that ran; 124 at a timeout, 128 + signal
};

// A program beside the workers, in the same jar.
struct ProgramCall {
  std::vector<std::string> arguments;
  std::string folder;  // inside; empty: the workdir
  std::vector<std::pair<std::string, std::string>> environment;
  bool terminal = false;  // 0, 1 and 2 are a terminal of its own; else three pipes
  std::uint16_t rows = 24, columns = 80;
  OnOutput on_output;
};

// How it is. Output is what came since it was last asked for, head and tail.
struct ProgramState {
  bool running = false;
  std::optional<int> exit_code;  // 128 + signal
  std::string out, err;          // with a terminal all is `out`
  std::uint64_t out_cut = 0, err_cut = 0;
};

struct SessionInfo {
  std::string id;
  bool busy = false;
  std::chrono::milliseconds idle{};
  std::uint64_t memory_kb = 0;
};

// Many sessions. A session is made by the first call that names it, waits for the next
// one, and ends when it is closed, has been idle for too long, or with the engine.
//
//   auto engine = belljar::Engine::start(*belljar::profile("restricted"));
//   auto result = engine->python("job-1", {.code = "print('hi')\n6 * 7"});
//   use(result->out, *result->result);  // "hi\n", "42"
//
// Calls block until they are answered, and may come from several threads: those of one
// session and kind wait for one another, others run at the same time. The engine has one
// thread of its own, on which OnOutput is called; it must not call the engine.
class Engine {
 public:
  static Result<Engine> start(const Policy& policy, const SessionSettings& settings = {},
                              const Caller& caller = this_process());
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();  // ends all sessions; calls that wait fail

  // Without an id one is made up. Returns it.
  Result<std::string> open(const std::string& id = {}, std::optional<Policy> policy = {});
  Result<PythonResult> python(const std::string& session, PythonCall call);
  Result<ShellResult> shell(const std::string& session, ShellCall call);
  // A fresh interpreter; files and what else runs stay.
  Status reset(const std::string& session);
  // Asks the calls that run there to stop.
  Status interrupt(const std::string& session);
  Status close(const std::string& session);
  std::vector<SessionInfo> list();

 private:
  struct State;
  explicit Engine(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace belljar
