#include "session/python.h"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "base/syscall.h"
#include "session/sources.h"

namespace belljar::session {
namespace {

using std::chrono::milliseconds;

// Of one frame. A figure is some hundred kilobytes.
constexpr std::size_t kMaxFrame = 16 << 20;
// Of all that a call shows, as JSON has it, and of its result.
constexpr std::size_t kMaxShown = 32 << 20;
constexpr std::size_t kMaxResult = 16 << 20;
constexpr std::size_t kCutResult = 64 << 10;  // what is kept of a text where it is more
constexpr std::size_t kMaxDisplayCount = 1000;
// A cold start imports the standard library; a busy machine takes its time.
constexpr milliseconds kStartTime{30'000};
// From the end of its answers to its own; a process that dies takes that long.
constexpr milliseconds kHangUpTime{200};

// Reads the worker's source from its pipe. It is started in / and only then goes to the
// workdir, where the guest may have put a json.py: Python 3.13 imports a module from the
// current folder before the first line of this.
constexpr const char* kBoot =
    "import sys\n"
    "del sys.path[0]\n"
    "import os, site\n"
    "os.chdir(sys.argv.pop())\n"
    "sys.path.append(site.getusersitepackages())\n"
    "def read(n):\n"
    "    data = b''\n"
    "    while len(data) < n:\n"
    "        part = os.read(0, n - len(data))\n"
    "        if not part: os._exit(86)\n"
    "        data += part\n"
    "    return data\n"
    "source = read(int.from_bytes(read(4), 'little'))\n"
    "scope = {'__name__': 'belljar_worker'}\n"
    "exec(compile(source, '<belljar>', 'exec'), scope)\n"
    "scope['main'](3)\n";

Error not_started(const std::string& python, int err) {
  Error error{.what = "start " + python + " in the jar", .err = err, .hint = {}};
  if (err != ENOENT) return error;
  const std::filesystem::path path = python;
  error.hint = path.is_absolute() && std::filesystem::exists(path)
                   ? "it is there, but the guest does not see it: --extra-read=" +
                         path.parent_path().parent_path().string() + " shows it"
                   : "install Python 3, or name one that the policy lets the guest read "
                     "(python in [session])";
  return error;
}

Result<std::shared_ptr<Process>> spawn(AsyncJar& jar, const std::string& python, int answers_fd,
                                       const std::array<int, 3>& stdio_fds) {
  launcher::Command command;
  // -s: what a guest leaves in its home does not run before the worker has begun.
  command.arguments = {python, "-s", "-c", kBoot, jar.plan().layout.workdir};
  command.folder = "/";
  command.stdio_fds = stdio_fds;
  command.control_fd = answers_fd;
  return jar.spawn(std::move(command));
}

// What is no message is the guest's doing, and is passed over. An error: it goes too far.
Result<std::optional<Message>> read_message(const std::string& payload) {
  if (has_too_many_parts(payload)) return fail("its answer has too many parts");
  return parse_message(payload);
}

}  // namespace

PythonWorker::PythonWorker(std::shared_ptr<AsyncJar> jar, std::shared_ptr<Process> process,
                           std::unique_ptr<Capture> capture, Fd requests, Fd answers,
                           std::size_t max_output, Beside beside)
    : jar_(std::move(jar)),
      process_(std::move(process)),
      capture_(std::move(capture)),
      requests_(jar_->loop(), requests.release()),
      answers_(jar_->loop(), answers.release()),
      frames_(kMaxFrame),
      max_output_(max_output),
      beside_(std::move(beside)) {}

PythonWorker::~PythonWorker() { kill(); }

Async<Result<std::shared_ptr<PythonWorker>>> PythonWorker::start(std::shared_ptr<AsyncJar> jar,
                                                                 const SessionSettings& settings,
                                                                 Beside beside,
                                                                 std::shared_ptr<Warm> warm,
                                                                 Patience patience) {
  Result<belljar::Pipe> requests = make_pipe();
  if (!requests) co_return std::unexpected(requests.error());
  Result<belljar::Pipe> answers = make_pipe();
  if (!answers) co_return std::unexpected(answers.error());
  for (int fd : {requests->write.get(), answers->read.get()})
    ::fcntl(fd, F_SETFL, O_NONBLOCK);  // cannot fail on what we have just made
  std::array<Fd, 2> outputs;
  Result<std::unique_ptr<Capture>> capture =
      Capture::make(jar->loop(), settings.max_output, outputs);
  if (!capture) co_return std::unexpected(capture.error());

  const std::array<int, 3> stdio = {requests->read.get(), outputs[0].get(), outputs[1].get()};
  Result<std::shared_ptr<Process>> process = fail("there is no warm interpreter");
  if (warm != nullptr) {
    process = co_await jar->fork(warm, answers->write.get(), stdio, patience);
    const bool is_over = !process && (patience.given_up() || !jar->alive());
    if (is_over) co_return std::unexpected(process.error());
  }
  const bool is_warm = process.has_value();
  const std::string why_cold = is_warm || warm == nullptr ? "" : process.error().message();
  if (!is_warm) process = spawn(*jar, settings.python, answers->write.get(), stdio);
  if (!process) co_return std::unexpected(process.error());
  std::shared_ptr<PythonWorker> worker(
      new PythonWorker(std::move(jar), *process, std::move(*capture), std::move(requests->write),
                       std::move(answers->read), settings.max_output, std::move(beside)));
  requests->read.reset();
  answers->write.reset();
  worker->is_warm_ = is_warm;
  worker->why_cold_ = why_cold;
  if (!is_warm) worker->send(frame(worker_source()));
  worker->send(frame(setup_request(kMaxFrame, is_warm ? "" : worker_display_source())));
  begin(worker->jar_->loop(), read(worker));
  begin(worker->jar_->loop(), write(worker));
  Status ready = co_await await_start(*worker->jar_, **process);
  if (ready) {
    ready = co_await worker->get_ready(patience);
  }
  if (ready) co_return worker;
  if ((*process)->exec_error != 0)
    ready = std::unexpected(not_started(settings.python, (*process)->exec_error));
  worker->kill();
  co_return std::unexpected(ready.error());
}

Async<Status> PythonWorker::get_ready(Patience patience) {
  auto over = [this] { return ready_ || !alive(); };
  const Status waited =
      co_await await_ready(*jar_, *process_, over, kStartTime, std::move(patience));
  if (!waited) co_return waited;
  if (ready_) co_return Status();
  const std::string said = capture_->take().err.text();
  if (!said.empty()) co_return fail("start the Python worker: " + said);
  co_return fail("start the Python worker: " +
                 (process_->ended() ? how_it_ended() : "it does not answer"));
}

// ---- the wire -----------------------------------------------------------------

Async<void> PythonWorker::read(std::shared_ptr<PythonWorker> self) {
  constexpr std::size_t kChunk = 64 << 10;
  std::string chunk(kChunk, '\0');
  while (!self->broken_) {
    const bool waited = co_await readable(self->answers_);
    if (!waited) break;
    ssize_t n =
        retry([&] { return ::read(self->answers_.native_handle(), chunk.data(), chunk.size()); });
    if (n < 0 && errno == EAGAIN) continue;
    if (n <= 0) {
      co_await self->await_own_end();
      break;
    }
    co_await self->take(std::string_view(chunk).substr(0, static_cast<std::size_t>(n)));
  }
  self->kill();
}

// It has closed its end, by dying or otherwise; how it dies is worth knowing.
Async<void> PythonWorker::await_own_end() {
  asio::steady_timer patience(jar_->loop(), kHangUpTime);
  co_await patience.async_wait(kAwait);
  if (alive()) fault_ = "it closed its connection to the session";
}

Async<void> PythonWorker::write(std::shared_ptr<PythonWorker> self) {
  while (!self->outbox_.empty() && !self->broken_) {
    const std::string_view bytes = std::string_view(self->outbox_).substr(self->sent_);
    const ssize_t n = write_to_pipe(self->requests_.native_handle(), bytes);
    if (n > 0) self->sent_ += static_cast<std::size_t>(n);
    if (self->sent_ == self->outbox_.size()) {
      self->outbox_.clear();
      self->sent_ = 0;
    }
    if (n < 0 && errno != EAGAIN) break;  // it has hung up, which the reader sees
    if (n > 0) continue;
    const bool waited = co_await writable(self->requests_);
    if (!waited) break;
  }
}

void PythonWorker::send(std::string bytes) {
  if (outbox_.empty())
    outbox_ = std::move(bytes);
  else
    outbox_.append(bytes);
}

Async<void> PythonWorker::take(std::string_view bytes) {
  const Status fed = frames_.feed(bytes);
  if (!fed) fault_ = fed.error().message();
  while (std::optional<std::string> payload = fault_.empty() ? frames_.next() : std::nullopt) {
    const std::size_t size = payload->size();
    auto read = [payload = std::move(*payload)] { return read_message(payload); };
    Result<std::optional<Message>> message = co_await beside_.run(size, std::move(read));
    if (!message) fault_ = message.error().message();
    if (message && *message) take(**std::move(message));
  }
  if (!fault_.empty()) kill();
  process_->changed.raise();
}

void PythonWorker::take(Message message) {
  if (std::holds_alternative<Ready>(message)) ready_ = true;
  if (Display* display = std::get_if<Display>(&message)) take(std::move(*display));
  if (Done* done = std::get_if<Done>(&message)) take(std::move(*done));
}

bool PythonWorker::may_keep(std::size_t bytes) {
  const std::size_t sum = call_.kept_bytes + bytes;
  if (call_.may_keep && !call_.may_keep(sum)) return false;
  call_.kept_bytes = sum;
  return true;
}

void PythonWorker::take(Done done) {
  if (done.id != call_.id || call_.done) return;
  if (done.size > kMaxResult || !may_keep(done.size)) {
    call_.is_cut = true;
    done.result_data.clear();
    auto cut = [](std::string& text) { text.resize(std::min(text.size(), kCutResult)); };
    cut(done.result_type);
    if (done.result) cut(*done.result);
    if (done.exception)
      for (std::string Exception::* part :
           {&Exception::type, &Exception::message, &Exception::traceback})
        cut(*done.exception.*part);
  }
  call_.done = std::move(done);
}

void PythonWorker::take(Display display) {
  if (display.id != call_.id || call_.done) return;
  PythonResult& result = call_.result;
  if (call_.kept_bytes + display.size > kMaxShown || result.displays.size() >= kMaxDisplayCount ||
      !may_keep(display.size)) {
    ++call_.dropped;
    return;
  }
  for (const auto& [mime, value] : display.data)
    if (mime == "image/png") result.images.push_back(value);
  if (!display.data.empty()) result.displays.push_back(std::move(display.data));
  for (std::string& one : display.video_frames) result.video_frames.push_back(std::move(one));
}

// ---- calls --------------------------------------------------------------------

void PythonWorker::interrupt() {
  asked_to_stop_ = true;
  process_->changed.raise();
}

void PythonWorker::kill() {
  if (broken_) return;
  broken_ = true;
  jar_->signal(*process_, SIGKILL);
  boost::system::error_code ignored;  // closing cannot fail in a way that matters
  (void)requests_.close(ignored);
  (void)answers_.close(ignored);
  process_->changed.raise();
}

void PythonWorker::retire() {
  jar_->kill_only(*process_);
  boost::system::error_code ignored;  // closing cannot fail in a way that matters
  (void)requests_.close(ignored);
  (void)answers_.close(ignored);
  broken_ = true;
}

Async<PythonResult> PythonWorker::execute(const PythonCall& call, milliseconds timeout,
                                          milliseconds grace) {
  const Clock::time_point began = Clock::now();
  call_ = Call{.id = ++last_id_, .done = {}, .result = {}, .may_keep = call.may_keep};
  asked_to_stop_ = false;
  capture_->begin_call(max_output_, call.on_output);
  // `call` is there until this has ended.
  auto ask = [&call, id = call_.id] { return frame(execute_request(id, call)); };
  std::string request = co_await beside_.run(call.code.size(), ask);
  const bool idle = outbox_.empty();
  send(std::move(request));
  if (idle) begin(jar_->loop(), write(shared_from_this()));
  Running running{.jar = *jar_,
                  .process = *process_,
                  .over = [this] { return call_.done.has_value() || !alive(); },
                  .make_stop = [this] { kill(); },
                  .asked_to_stop = asked_to_stop_};
  const Stopped stopped = co_await await_end(std::move(running), began + timeout, grace);
  if (!call_.done) {
    kill();
    co_await await_death(*jar_, *process_);
  }

  PythonResult result = std::move(call_.result);
  co_await tell_output(result, capture_->take(), beside_);
  result.time = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - began);
  finish(result, stopped);
  co_return result;
}

std::string PythonWorker::how_it_ended() const {
  if (!fault_.empty()) return "the interpreter was ended: " + fault_;
  const int status = process_->status.value_or(0);
  if (WIFSIGNALED(status)) return "the interpreter was killed by " + signal_name(WTERMSIG(status));
  return "the interpreter exited with code " + std::to_string(WEXITSTATUS(status));
}

// What the answer, or the lack of one, means.
void PythonWorker::finish(PythonResult& result, const Stopped& stopped) {
  if (call_.is_cut) result.notes.emplace_back("the result was cut: it was too long");
  if (call_.dropped > 0)
    result.notes.push_back(std::to_string(call_.dropped) + " displays were dropped: too many");
  result.status = call_.done && call_.done->success ? CallStatus::success : CallStatus::error;
  tell_stop(result, stopped);
  if (call_.done) {
    result.exception = std::move(call_.done->exception);
    result.result = std::move(call_.done->result);
    result.result_type = std::move(call_.done->result_type);
    result.result_data = std::move(call_.done->result_data);
    result.exit_code = call_.done->exit_code;
    return;
  }
  if (const auto status = process_->status)
    result.exit_code = WIFSIGNALED(*status) ? 128 + WTERMSIG(*status) : WEXITSTATUS(*status);
  result.state_lost = true;
  tell_limit(result, *jar_);
  if (!stopped.killed && !jar_->ended_by()) result.notes.push_back(how_it_ended());
  result.notes.emplace_back("the interpreter's state was lost");
}

}  // namespace belljar::session

namespace belljar {

std::string_view name(CallStatus status) {
  switch (status) {
    case CallStatus::success:
      return "success";
    case CallStatus::error:
      return "error";
    case CallStatus::timeout:
      return "timeout";
  }
  return "?";
}

}  // namespace belljar
