#include "cli/session_loop.h"

#include <unistd.h>

#include <csignal>

#include "base/file.h"
#include "cli/exec.h"

namespace belljar::cli {
namespace {

constexpr const char* kSession = "terminal";
constexpr std::chrono::hours kForEver{24 * 3650};

SessionSettings settings_of(const Loaded& loaded) {
  SessionSettings settings = loaded.session;
  // A person works on the folder they are in.
  settings.workdir = loaded.policy.files.workdir;
  // Nor does a program that they run end by itself.
  settings.python_timeout = settings.shell_timeout = settings.max_timeout =
      loaded.policy.limits.timeout.value_or(kForEver);
  // Nothing would be forked from a warm interpreter but the one that starts now.
  settings.preload = {};
  return settings;
}

}  // namespace

void print_notes(const CallReport& report, const Policy& policy) {
  if (report.status == CallStatus::timeout && policy.limits.timeout)
    print_warning("ended after " + std::to_string(policy.limits.timeout->count()) +
                  " ms (--timeout changes it)");
  for (const std::string& note : report.notes) print_warning(note);
}

TerminalSession::TerminalSession() : interrupt_(loop_, SIGINT) {}

Result<std::unique_ptr<TerminalSession>> TerminalSession::start(const Loaded& loaded) {
  const Caller caller = this_caller();
  TRY(check_workdir(loaded, caller));
  std::unique_ptr<TerminalSession> session(new TerminalSession);
  session->engine_ = TRY(session::Engine::make(session->loop_, loaded.policy, caller,
                                               settings_of(loaded), loaded.bound));
  session->listen_for_interrupt();
  return session;
}

void TerminalSession::listen_for_interrupt() {
  interrupt_.async_wait([this](boost::system::error_code error, int) {
    if (error) return;
    (void)engine_->interrupt(kSession);  // without a session there is nothing to stop
    listen_for_interrupt();
  });
}

OnOutput TerminalSession::printer() {
  out_ = err_ = {};
  if (!streaming_) return {};
  return [this](OutputStream stream, std::string_view bytes) { print(stream, bytes); };
}

void TerminalSession::print(OutputStream stream, std::string_view bytes) {
  const int fd = stream == OutputStream::out ? 1 : 2;
  TerminalFilter& filter = stream == OutputStream::out ? out_ : err_;
  if (::isatty(fd) != 0)
    write_all(fd, filter.pass(bytes));
  else
    write_all(fd, bytes);
}

template <class T>
Result<T> TerminalSession::wait_for(Async<Result<T>> call) {
  std::optional<Result<T>> result;
  auto work = [](Async<Result<T>> what, std::optional<Result<T>>& to, Loop& loop) -> Async<void> {
    to = co_await std::move(what);
    loop.stop();
  };
  begin(loop_, work(std::move(call), result, loop_));
  loop_.restart();
  loop_.run();
  return std::move(*result);
}

Result<PythonResult> TerminalSession::python(PythonCall call) {
  call.on_output = printer();
  return wait_for(engine_->python(kSession, std::move(call)));
}

Result<ShellResult> TerminalSession::shell(std::vector<std::string> commands) {
  ShellCall call;
  call.commands = std::move(commands);
  call.one_shot = true;  // nothing comes after it
  call.on_output = printer();
  return wait_for(engine_->shell(kSession, std::move(call)));
}

}  // namespace belljar::cli
