#include "cli/session_loop.h"

#include <unistd.h>

#include <csignal>

#include "base/syscall.h"
#include "cli/exec.h"

namespace belljar::cli {
namespace {

constexpr const char* kSession = "terminal";

SessionSettings settings_of(const Loaded& loaded) {
  SessionSettings settings = loaded.session;
  // A person works on the folder they are in.
  settings.workdir = loaded.policy.files.workdir;
  if (const auto timeout = loaded.policy.limits.timeout)
    settings.python_timeout = settings.shell_timeout = settings.max_timeout = *timeout;
  return settings;
}

}  // namespace

void write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t n = retry([&] { return ::write(fd, bytes.data(), bytes.size()); });
    if (n <= 0) return;  // nobody reads any more; the exit code still tells
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

TerminalSession::TerminalSession() : interrupt_(loop_, SIGINT) {}

Result<std::unique_ptr<TerminalSession>> TerminalSession::start(const Loaded& loaded) {
  const Caller caller = this_caller();
  TRY(check_workdir(loaded, caller));
  std::unique_ptr<TerminalSession> session(new TerminalSession);
  session->engine_ =
      TRY(session::Engine::make(session->loop_, loaded.policy, caller, settings_of(loaded)));
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
  if (!streaming_) return {};
  return [this](OutputStream stream, std::string_view bytes) {
    const int fd = stream == OutputStream::out ? 1 : 2;
    TerminalFilter& filter = stream == OutputStream::out ? out_ : err_;
    if (::isatty(fd) != 0)
      write_all(fd, filter.pass(bytes));
    else
      write_all(fd, bytes);
  };
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

Result<PythonResult> TerminalSession::python(std::string code) {
  PythonCall call{.code = std::move(code), .timeout = {}, .outputs = {}, .on_output = printer()};
  return wait_for(engine_->python(kSession, std::move(call)));
}

Result<ShellResult> TerminalSession::shell(std::vector<std::string> commands) {
  ShellCall call;
  call.commands = std::move(commands);
  call.on_output = printer();
  return wait_for(engine_->shell(kSession, std::move(call)));
}

}  // namespace belljar::cli
