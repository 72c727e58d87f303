#include "session/capture.h"

#include <sys/ioctl.h>

#include <algorithm>

#include "base/syscall.h"

namespace belljar::session {
namespace {

constexpr std::size_t kChunk = 64 << 10;
// A guest that writes without end must not keep the loop from the others.
constexpr int kChunksAtOnce = 16;
// What is heard becomes an event for each who listens.
constexpr std::size_t kHeardAtOnce = 16 << 10;
// What may come between two calls before its writer has to wait, and how long for each chunk.
constexpr std::size_t kIdleBytes = 64 << 20;
constexpr std::chrono::milliseconds kIdlePause{100};

}  // namespace

Capture::Capture(Loop& loop, std::size_t limit)
    : limit_(limit),
      pipes_{std::make_shared<Pipe>(loop, OutputStream::out, limit),
             std::make_shared<Pipe>(loop, OutputStream::err, limit)} {}

Result<std::unique_ptr<Capture>> Capture::make(Loop& loop, std::size_t limit,
                                               std::array<Fd, 2>& guests_ends) {
  std::unique_ptr<Capture> capture(new Capture(loop, limit));
  for (std::size_t i = 0; i < 2; ++i) {
    belljar::Pipe ends = TRY(make_pipe());
    guests_ends[i] = std::move(ends.write);
    if (::fcntl(ends.read.get(), F_SETFL, O_NONBLOCK) < 0) return fail("make a pipe", errno);
    capture->pipes_[i]->stream.assign(ends.read.release());
  }
  for (const auto& pipe : capture->pipes_) begin(loop, read(pipe));
  return capture;
}

std::unique_ptr<Capture> Capture::of(Loop& loop, std::size_t limit, Fd fd) {
  std::unique_ptr<Capture> capture(new Capture(loop, limit));
  capture->pipes_[0]->stream.assign(fd.release());
  begin(loop, read(capture->pipes_[0]));
  return capture;
}

Capture::~Capture() {
  for (const auto& pipe : pipes_) {
    boost::system::error_code ignored;  // the pipe is gone either way
    pipe->listener = nullptr;
    (void)pipe->stream.close(ignored);
    pipe->call_begins.raise();
  }
}

// False: there is nothing to read now, or never again.
bool Capture::read_once(Pipe& pipe, std::size_t at_most) {
  char chunk[kChunk];
  const std::size_t size = std::min(at_most, sizeof chunk);
  ssize_t n = retry([&] { return ::read(pipe.stream.native_handle(), chunk, size); });
  if (n <= 0) {
    boost::system::error_code ignored;
    if (n == 0 || errno != EAGAIN) (void)pipe.stream.close(ignored);
    return false;
  }
  const std::string_view bytes(chunk, static_cast<std::size_t>(n));
  if (!pipe.in_call) pipe.idle_bytes += bytes.size();
  pipe.output.append(bytes);
  if (pipe.listener) pipe.listener(pipe.which, bytes);
  return true;
}

Async<void> Capture::read(std::shared_ptr<Pipe> pipe) {
  while (pipe->stream.is_open()) {
    const bool waited = co_await readable(pipe->stream);
    if (!waited) co_return;
    const bool slowly = !pipe->in_call && pipe->idle_bytes > kIdleBytes;
    const bool is_heard = pipe->listener != nullptr;
    const std::size_t most = is_heard ? kHeardAtOnce : kChunk;
    int chunks = slowly || is_heard ? kChunksAtOnce - 1 : 0;
    while (chunks < kChunksAtOnce && pipe->stream.is_open() && read_once(*pipe, most)) ++chunks;
    if (slowly) co_await pipe->call_begins.wait_until(Clock::now() + kIdlePause);
  }
}

// Up to what is in the pipe now: somebody may go on writing to it for ever.
void Capture::drain(Pipe& pipe) {
  int waiting = 0;
  if (!pipe.stream.is_open() || ::ioctl(pipe.stream.native_handle(), FIONREAD, &waiting) < 0)
    return;
  const std::uint64_t end = pipe.output.written() + static_cast<std::uint64_t>(waiting);
  while (pipe.stream.is_open() && pipe.output.written() < end &&
         read_once(pipe, end - pipe.output.written())) {
  }
}

void Capture::begin_call(std::size_t limit, const OnOutput& listener) {
  for (const auto& pipe : pipes_) {
    pipe->output.set_limit(limit);
    pipe->listener = listener;
    pipe->in_call = true;
    pipe->call_begins.raise();
  }
}

Capture::Taken Capture::take() {
  for (const auto& pipe : pipes_) {
    drain(*pipe);
    pipe->listener = nullptr;
    pipe->in_call = false;
    pipe->idle_bytes = 0;
  }
  return {.out = std::exchange(pipes_[0]->output, Output(limit_)),
          .err = std::exchange(pipes_[1]->output, Output(limit_))};
}

}  // namespace belljar::session
