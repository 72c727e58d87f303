#include "session/shell.h"

#include <sys/wait.h>

#include <charconv>
#include <csignal>

#include "base/random.h"
#include "base/syscall.h"
#include "base/utf8.h"
#include "session/descendants.h"

namespace belljar::session {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kStartTime{15'000};
constexpr std::size_t kMaxAnswer = 64 << 10;
// dash drops what it has read ahead when a command has an error, and with it the line that
// makes it answer. So each read gives it one line at most; and shells read so much at once.
constexpr std::size_t kPacket = 128;
// How often the processes of a command are killed before the shell itself is: a loop in it
// may start new ones.
constexpr int kMaxStops = 3;
// How long a shell has to answer after an interrupt, and how often it is asked.
constexpr milliseconds kSettleTime{300};
constexpr int kMaxAsked = 10;

// Said before anything else: no prompt, no history, no mail.
constexpr const char* kSetUp =
    "PS1= PS2= PROMPT_COMMAND=; unset PROMPT_COMMAND HISTFILE MAILCHECK; "
    "set +o history 2>/dev/null\n";

std::string quoted(std::string_view text) {
  std::string result = "'";
  for (char c : text) {
    if (c == '\'')
      result += "'\\''";
    else
      result += c;
  }
  return result + "'";
}

// `command`, and the backslash, since a guest may have functions and aliases of any name.
std::string line_of(std::string_view command) {
  return "\\command eval " + quoted(command) + " </dev/null 3>&-\n";
}

std::vector<std::string> arguments_for(const std::string& shell) {
  const std::string_view name = std::string_view(shell).substr(shell.rfind('/') + 1);
  if (name == "bash") return {shell, "--noprofile", "--norc", "--noediting", "-i"};
  return {shell, "-i"};
}

// bash says this of the terminal it has not got, whenever a signal ends a command.
constexpr std::string_view kNoTerminal = "] tcsetattr: Inappropriate ioctl for device\n";

// Once through: a guest can write a megabyte of nothing else.
std::string without_noise(std::string_view text) {
  std::string kept;
  std::size_t line = 0;  // where its last line begins
  for (std::size_t at = text.find(kNoTerminal); at != text.npos; at = text.find(kNoTerminal)) {
    const std::string_view before = text.substr(0, at);
    if (const std::size_t end = before.rfind('\n'); end != before.npos)
      line = kept.size() + end + 1;
    kept.append(before);
    text.remove_prefix(at + kNoTerminal.size());
    const std::size_t noise = std::string_view(kept).substr(line).rfind("bash: [");
    if (noise != std::string_view::npos) {
      kept.resize(line + noise);
    } else {
      kept.append(kNoTerminal);
      line = kept.size();
    }
  }
  return kept.append(text);
}

// An interactive bash says this when it is told to exit.
constexpr std::string_view kFarewell = "exit\n";

bool ends_with_farewell(std::string_view text) {
  return text == kFarewell || text.ends_with("\nexit\n");
}

// Passes on what a shell writes without that noise. A last line that may be the farewell is
// held back until more comes, or it is known whether the shell has ended.
class Listener {
 public:
  Listener(OnOutput hears, bool is_bash) : hears_(std::move(hears)), is_bash_(is_bash) {}

  void hear(OutputStream stream, std::string_view bytes) {
    release();
    if (stream == OutputStream::out) return hears_(stream, bytes);
    std::string text(bytes);
    if (text.find(kNoTerminal) != text.npos) text = without_noise(text);
    const bool at_begin = std::exchange(line_begins_, text.ends_with('\n'));
    if (is_bash_ && (text.ends_with("\nexit\n") || (at_begin && text == kFarewell))) {
      held_ = kFarewell;
      text.erase(text.size() - kFarewell.size());
    }
    if (!text.empty()) hears_(stream, text);
  }
  void release() {
    if (!held_.empty()) hears_(OutputStream::err, std::exchange(held_, {}));
  }

 private:
  OnOutput hears_;
  bool is_bash_;
  std::string held_;
  bool line_begins_ = true;
};

Error not_started(const std::string& shell, int err) {
  return {.what = "start " + shell + " in the jar",
          .err = err,
          .hint = err == ENOENT
                      ? "name one that is installed (shell in [session]): sh is everywhere"
                      : ""};
}

}  // namespace

ShellWorker::ShellWorker(std::shared_ptr<AsyncJar> jar, std::shared_ptr<Process> process,
                         std::unique_ptr<Capture> capture, Fd commands, Fd answers,
                         std::string folder, Beside beside)
    : jar_(std::move(jar)),
      process_(std::move(process)),
      capture_(std::move(capture)),
      commands_(jar_->loop(), commands.release()),
      answers_(jar_->loop(), answers.release()),
      folder_(std::move(folder)),
      beside_(std::move(beside)) {}

ShellWorker::~ShellWorker() { kill(); }

Async<Result<std::shared_ptr<ShellWorker>>> ShellWorker::start(std::shared_ptr<AsyncJar> jar,
                                                               const SessionSettings& settings,
                                                               Beside beside, std::string folder) {
  using Started = Result<std::shared_ptr<ShellWorker>>;
  Result<belljar::Pipe> commands = make_pipe();
  if (!commands) co_return std::unexpected(commands.error());
  Result<belljar::Pipe> answers = make_pipe();
  if (!answers) co_return std::unexpected(answers.error());
  // These cannot fail on what we have just made. O_DIRECT: each write is a packet, see kPacket.
  ::fcntl(commands->write.get(), F_SETFL, O_NONBLOCK | O_DIRECT);
  ::fcntl(answers->read.get(), F_SETFL, O_NONBLOCK);
  std::array<Fd, 2> outputs;
  Result<std::unique_ptr<Capture>> capture =
      Capture::make(jar->loop(), settings.max_output, outputs);
  if (!capture) co_return std::unexpected(capture.error());

  launcher::Command command;
  command.arguments = arguments_for(settings.shell);
  command.folder = folder;
  command.stdio_fds = {commands->read.get(), outputs[0].get(), outputs[1].get()};
  command.control_fd = answers->write.get();
  Result<std::shared_ptr<Process>> process = jar->spawn(std::move(command));
  if (!process) co_return std::unexpected(process.error());
  std::shared_ptr<ShellWorker> worker(
      new ShellWorker(std::move(jar), *process, std::move(*capture), std::move(commands->write),
                      std::move(answers->read), std::move(folder), std::move(beside)));
  answers->write.reset();
  commands->read.reset();
  begin(worker->jar_->loop(), read(worker));
  worker->send(kSetUp);
  worker->send_command(line_of(":"));
  const Status spawned = co_await await_start(*worker->jar_, **process);
  if (!spawned) co_return std::unexpected(spawned.error());
  auto over = [&worker] { return worker->status_ || !worker->alive(); };
  const Status waited =
      co_await await_ready(*worker->jar_, **process, over, kStartTime, Patience());
  if (!waited) co_return std::unexpected(waited.error());
  const std::string said = worker->capture_->take().err.text();  // "no job control", usually
  if (worker->status_) co_return worker;
  worker->kill();
  if (worker->process_->exec_error != 0)
    co_return std::unexpected(not_started(settings.shell, worker->process_->exec_error));
  co_return Started(fail("start " + settings.shell + ": it does not answer: " + said));
}

// ---- the wire -----------------------------------------------------------------

Async<void> ShellWorker::read(std::shared_ptr<ShellWorker> self) {
  char chunk[4096];
  while (!self->broken_) {
    const bool waited = co_await readable(self->answers_);
    if (!waited) break;
    ssize_t n = retry([&] { return ::read(self->answers_.native_handle(), chunk, sizeof chunk); });
    if (n < 0 && errno == EAGAIN) continue;
    if (n <= 0) break;
    self->inbox_.append(chunk, static_cast<std::size_t>(n));
    for (std::size_t end = self->inbox_.find('\0'); end != std::string::npos;
         end = self->inbox_.find('\0')) {
      self->take(std::string_view(self->inbox_).substr(0, end));
      self->inbox_.erase(0, end + 1);
    }
    if (self->inbox_.size() > kMaxAnswer) break;
    self->process_->changed.raise();
  }
  // It may have become another program, which is let end by itself; a shell is told to.
  self->mute_ = true;
  if (!self->broken_) self->send("exit\n");
}

Async<void> ShellWorker::write(std::shared_ptr<ShellWorker> self) {
  while (!self->outbox_.empty() && !self->broken_) {
    std::string_view packet = std::string_view(self->outbox_).substr(self->sent_, kPacket);
    if (const std::size_t end = packet.find('\n'); end != packet.npos)
      packet = packet.substr(0, end + 1);
    const ssize_t n = write_to_pipe(self->commands_.native_handle(), packet);
    if (n > 0) self->sent_ += static_cast<std::size_t>(n);
    if (self->sent_ == self->outbox_.size()) {
      self->outbox_.clear();
      self->sent_ = 0;
    }
    if (n < 0 && errno != EAGAIN) break;  // it has hung up, and will be seen to end
    if (n > 0) continue;
    const bool waited = co_await writable(self->commands_);
    if (!waited) break;
  }
  self->writing_ = false;
}

void ShellWorker::send(std::string text) {
  if (outbox_.empty())
    outbox_ = std::move(text);
  else
    outbox_.append(text);
  if (std::exchange(writing_, true)) return;
  begin(jar_->loop(), write(shared_from_this()));
}

// Two lines, so that the second is read after an interrupt of the first.
void ShellWorker::send_command(std::string line) {
  send(std::move(line));
  ask_for_answer();
}

// By a number that nobody guesses: a command may go on after it has answered for itself, and
// would answer for those that come next.
void ShellWorker::ask_for_answer() {
  status_.reset();
  last_id_ = std::stoull(random_hex(sizeof last_id_), nullptr, 16);
  ask_again();
}

void ShellWorker::ask_again() {
  send("\\command printf '" + std::to_string(last_id_) +
       " %s %s\\0' \"$?\" \"$PWD\" >&3 2>/dev/null\n");
}

// "ID STATUS FOLDER".
void ShellWorker::take(std::string_view answer) {
  std::uint64_t id = 0;
  int status = 0;
  const char* begin = answer.data();
  const char* end = begin + answer.size();
  const auto [after_id, no_id] = std::from_chars(begin, end, id);
  if (no_id != std::errc() || id != last_id_ || status_ || after_id == end) return;
  const auto [after_status, no_status] = std::from_chars(after_id + 1, end, status);
  if (no_status != std::errc() || after_status == end) return;
  status_ = status;
  folder_.assign(after_status + 1, end);
}

// ---- calls --------------------------------------------------------------------

void ShellWorker::interrupt() {
  asked_to_stop_ = true;
  process_->changed.raise();
}

void ShellWorker::kill() {
  if (broken_) return;
  broken_ = true;
  jar_->signal(*process_, SIGKILL);
  boost::system::error_code ignored;  // closing cannot fail in a way that matters
  (void)commands_.close(ignored);
  (void)answers_.close(ignored);
  process_->changed.raise();
}

// The shell's own processes first, and then what it would do next.
void ShellWorker::stop_what_runs() {
  if (++stops_ > kMaxStops) return kill();
  jar_->kill_descendants(*process_, began_ticks_);
  jar_->signal(*process_, SIGINT);
  ask_again();  // it may have dropped that line: see settle
}

Async<Stopped> ShellWorker::run_commands(const ShellCall& call, ShellResult& result,
                                         Clock::time_point deadline, milliseconds grace) {
  Stopped stopped;
  for (const std::string& command : call.commands) {
    result.commands.push_back({.command = command, .exit_code = {}});
    if (stopped.why != Stop::none || !alive()) continue;
    auto write = [&command] { return line_of(command); };  // which is the caller's, who waits
    std::string line = co_await beside_.run(command.size(), write);
    send_command(std::move(line));
    Running running{.jar = *jar_,
                    .process = *process_,
                    .over = [this] { return status_.has_value() || broken_ || process_->ended(); },
                    .make_stop = [this] { stop_what_runs(); },
                    .asked_to_stop = asked_to_stop_};
    stopped = co_await await_end(std::move(running), deadline, grace);
    if (status_) result.commands.back().exit_code = result.exit_code = *status_;
  }
  co_return stopped;
}

// A shell drops the line that it has just read when an interrupt comes. That must not be one
// of the next call's, so it has to show that it has the interrupt behind it.
Async<void> ShellWorker::settle() {
  for (int asked = 0; asked < kMaxAsked && alive(); ++asked) {
    ask_for_answer();
    const Clock::time_point deadline = Clock::now() + kSettleTime;
    while (!status_ && alive() && Clock::now() < deadline) {
      jar_->continue_stopped(*process_);
      co_await process_->changed.wait_until(deadline);
    }
    if (status_) co_return;
  }
  kill();
}

Async<ShellResult> ShellWorker::run(const ShellCall& call, milliseconds timeout,
                                    const SessionSettings& settings) {
  const Clock::time_point began = Clock::now();
  ShellResult result;
  asked_to_stop_ = false;
  stops_ = 0;
  began_ticks_ = process_clock();
  const bool is_bash = settings.shell.ends_with("bash");
  const auto listener = std::make_shared<Listener>(call.on_output, is_bash);
  OnOutput on_output;
  if (call.on_output)
    on_output = [listener](OutputStream stream, std::string_view bytes) {
      listener->hear(stream, bytes);
    };
  capture_->begin_call(std::min(call.max_output.value_or(settings.max_output), settings.max_output),
                       on_output);
  const Stopped stopped = co_await run_commands(call, result, began + timeout, settings.grace);
  if (stopped.why != Stop::none && alive()) co_await settle();
  if (!alive()) {
    kill();
    co_await await_death(*jar_, *process_);
  }
  co_await tell_output(result, capture_->take(), beside_);
  const std::size_t size = result.err.size();
  auto clean = [text = std::move(result.err)] { return without_noise(text); };
  result.err = co_await beside_.run(size, std::move(clean));
  const bool exited = process_->status && WIFEXITED(*process_->status);
  if (!exited) listener->release();
  if (exited && is_bash && ends_with_farewell(result.err))
    result.err.erase(result.err.size() - kFarewell.size());
  result.time = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - began);
  if (process_->status) {
    const int status = *process_->status;
    result.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    for (RunCommand& command : result.commands) {
      if (command.exit_code) continue;
      command.exit_code = result.exit_code;
      break;  // it was the first without one that ended the shell
    }
    result.state_lost = true;
    // A shell of one call's own that exits has done what it was there for.
    const std::string how = WIFSIGNALED(status)
                                ? ", killed by " + signal_name(WTERMSIG(status))
                                : " with code " + std::to_string(WEXITSTATUS(status));
    if (!call.one_shot)
      result.notes.push_back("the shell ended" + how +
                             "; its variables, functions and options were lost");
    else if (WIFSIGNALED(status))
      result.notes.push_back("the shell ended" + how);
    tell_limit(result, *jar_);
  }
  result.status = result.exit_code == 0 ? CallStatus::success : CallStatus::error;
  tell_stop(result, stopped);
  if (stopped.why == Stop::timeout) result.exit_code = 124;
  result.working_directory = repair_utf8(folder_);
  co_return result;
}

}  // namespace belljar::session
