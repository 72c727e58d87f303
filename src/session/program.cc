#include "session/program.h"

#include <sys/ioctl.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>

#include "base/printable.h"
#include "base/syscall.h"
#include "session/stopping.h"

namespace belljar::session {
namespace {

// What a program may be sent before it has read any.
constexpr std::size_t kMaxPending = 16 << 20;

Status set_size(int fd, std::uint16_t rows, std::uint16_t columns) {
  const winsize size{.ws_row = rows, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
  if (::ioctl(fd, TIOCSWINSZ, &size) < 0) return fail("set the size of a terminal", errno);
  return {};
}

Error no_folder(const std::string& folder, int err) {
  Error error{.what = "enter the folder " + printable(folder), .err = err, .hint = {}};
  if (err == ENOENT) error.hint = "make it first, or leave it out for the workdir";
  if (err == ENOTDIR) error.hint = "it is no folder: name the one that it is in";
  return error;
}

// What could be meant by it, and what to do.
Error no_program(const ProgramCall& call, int err) {
  const std::string& program = call.arguments[0];
  const bool is_path = program.find('/') != program.npos;
  Error error{.what = "start " + printable(program), .err = err, .hint = {}};
  if (err == ENOENT && program.find(' ') != program.npos && call.arguments.size() == 1)
    error.hint = "no shell reads it: every word is an argument of its own";
  else if (err == ENOENT && !is_path)
    error.hint = "no folder of the session's PATH has it; name it by its path, as ./" +
                 printable(program) + ", if it lies elsewhere";
  else if (err == ENOENT)
    error.hint = "the session sees no such file, or not the interpreter that its first line names";
  if (err == EACCES) error.hint = "is it executable? else start the program that reads it";
  if (err == ENOEXEC) error.hint = "it is no program: start the one that reads it";
  return error;
}

}  // namespace

// What the program gets, and what stays with us.
struct Program::Ends {
  std::array<Fd, 3> guests;
  Fd input;
  std::unique_ptr<Capture> capture;
};

Program::Program(std::shared_ptr<AsyncJar> jar, std::shared_ptr<Process> process,
                 const ProgramCall& call, std::size_t max_output)
    : jar_(std::move(jar)),
      process_(std::move(process)),
      has_terminal_(call.terminal),
      input_(jar_->loop()),
      max_output_(max_output),
      on_output_(call.on_output) {}

Program::~Program() { jar_->signal(*process_, SIGKILL); }

Result<Program::Ends> Program::open_pipes(Loop& loop, std::size_t max_output) {
  Ends ends;
  belljar::Pipe input = TRY(make_pipe());
  std::array<Fd, 2> outputs;
  ends.capture = TRY(Capture::make(loop, max_output, outputs));
  ends.guests = {std::move(input.read), std::move(outputs[0]), std::move(outputs[1])};
  ends.input = std::move(input.write);
  return ends;
}

Result<Program::Ends> Program::open_terminal(Loop& loop, std::size_t max_output,
                                             const ProgramCall& call) {
  Ends ends;
  ends.input = Fd(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  char name[128];
  if (!ends.input || ::grantpt(ends.input.get()) < 0 || ::unlockpt(ends.input.get()) < 0 ||
      ::ptsname_r(ends.input.get(), name, sizeof name) != 0)
    return fail("make a terminal", errno);
  for (Fd& end : ends.guests) end = TRY(open_path(name, O_RDWR | O_NOCTTY | O_CLOEXEC));
  TRY(set_size(ends.input.get(), call.rows, call.columns));
  Fd output(::fcntl(ends.input.get(), F_DUPFD_CLOEXEC, 0));
  if (!output) return fail("make a terminal", errno);
  ends.capture = Capture::of(loop, max_output, std::move(output));
  return ends;
}

Async<Result<std::shared_ptr<Program>>> Program::start(std::shared_ptr<AsyncJar> jar,
                                                       ProgramCall call, std::size_t max_output) {
  Result<Ends> ends = call.terminal ? open_terminal(jar->loop(), max_output, call)
                                    : open_pipes(jar->loop(), max_output);
  if (!ends) co_return std::unexpected(ends.error());
  // As the file tools take it; init is in no folder that anybody knows.
  if (!call.folder.empty() && !call.folder.starts_with('/'))
    call.folder = jar->plan().layout.workdir + "/" + call.folder;
  launcher::Command command;
  command.arguments = call.arguments;
  command.folder = call.folder;
  for (const auto& [name, value] : call.environment)
    command.environment.push_back(name + "=" + value);
  if (call.terminal) command.environment.emplace_back("TERM=xterm-256color");
  command.owns_terminal = call.terminal;
  for (std::size_t i = 0; i < 3; ++i) command.stdio_fds[i] = ends->guests[i].get();
  Result<std::shared_ptr<Process>> process = jar->spawn(std::move(command));
  if (!process) co_return std::unexpected(process.error());
  std::shared_ptr<Program> program(new Program(std::move(jar), *process, call, max_output));
  ends->guests = {};
  ::fcntl(ends->input.get(), F_SETFL, O_NONBLOCK);  // cannot fail on what we have just made
  program->input_.assign(ends->input.release());
  program->capture_ = std::move(ends->capture);
  program->on_output_ = [weak = std::weak_ptr(program), then = std::move(program->on_output_)](
                            OutputStream stream, std::string_view bytes) {
    if (const std::shared_ptr<Program> self = weak.lock()) self->hear();
    if (then) then(stream, bytes);
  };
  program->capture_->begin_call(max_output, program->on_output_);
  const Status spawned = co_await await_start(*program->jar_, *program->process_);
  if (!spawned) co_return std::unexpected(spawned.error());
  if (const int err = program->process_->exec_error; err != 0)
    co_return std::unexpected(program->process_->no_folder ? no_folder(call.folder, err)
                                                           : no_program(call, err));
  co_return program;
}

// ---- what it reads ------------------------------------------------------------

Status Program::write(std::string_view bytes) {
  if (!running() || input_ends_) return fail("the program reads no more");
  if (unread() + bytes.size() > kMaxPending)
    return fail("the program does not read what it was sent");
  outbox_.append(bytes);
  if (!std::exchange(sending_, true)) begin(jar_->loop(), send(shared_from_this()));
  return {};
}

Async<void> Program::send(std::shared_ptr<Program> self) {
  while (self->unread() > 0 && self->input_.is_open()) {
    const std::string_view bytes = std::string_view(self->outbox_).substr(self->sent_);
    const ssize_t n = write_to_pipe(self->input_.native_handle(), bytes);
    if (n > 0) self->was_sent(static_cast<std::size_t>(n));
    if (n > 0) continue;
    if (errno != EAGAIN) break;  // it has hung up
    const bool waited = co_await writable(self->input_);
    if (!waited) break;
  }
  self->sending_ = false;
  if (self->input_ends_) self->end_of_input();
}

// A pipe takes a little at a time, and what is left is not moved up for each.
void Program::was_sent(std::size_t size) {
  sent_ += size;
  if (2 * sent_ < outbox_.size()) return;
  outbox_.erase(0, sent_);
  outbox_.shrink_to_fit();
  sent_ = 0;
}

Status Program::close_input() {
  if (has_terminal_) return fail("a terminal's input has no end", 0, "write ^D (\\x04)");
  input_ends_ = true;
  if (!sending_) end_of_input();
  return {};
}

void Program::end_of_input() {
  boost::system::error_code ignored;  // the pipe is gone either way
  (void)input_.close(ignored);
}

Status Program::resize(std::uint16_t rows, std::uint16_t columns) {
  if (!has_terminal_) return fail("the program has no terminal");
  return set_size(input_.native_handle(), rows, columns);
}

// ---- what it writes -----------------------------------------------------------

ProgramState Program::read() {
  ProgramState state{.running = running(), .exit_code = {}, .out = {}, .err = {}};
  const Capture::Taken taken = capture_->take();
  has_news_ = false;  // what came with it was read, too
  capture_->begin_call(max_output_, on_output_);
  state.out = taken.out.text();
  state.err = taken.err.text();
  state.out_cut = taken.out.cut();
  state.err_cut = taken.err.cut();
  if (const auto status = process_->status)
    state.exit_code = WIFSIGNALED(*status) ? 128 + WTERMSIG(*status) : WEXITSTATUS(*status);
  return state;
}

void Program::hear() {
  has_news_ = true;
  process_->changed.raise();
}

Async<void> Program::wait_for_news(Clock::time_point until) {
  const std::shared_ptr<Program> keep = shared_from_this();
  while (running() && !has_news_ && Clock::now() < until)
    co_await process_->changed.wait_until(until);
}

Async<bool> Program::ended(Clock::time_point until) {
  const std::shared_ptr<Program> keep = shared_from_this();
  while (running() && Clock::now() < until) co_await process_->changed.wait_until(until);
  co_return !running();
}

Async<ProgramState> Program::wait(Clock::time_point until) {
  const std::shared_ptr<Program> keep = shared_from_this();
  co_await ended(until);
  co_return read();
}

}  // namespace belljar::session
