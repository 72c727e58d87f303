#include "server/mcp_stdio.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>

#include "base/syscall.h"

namespace belljar::server {
namespace {

constexpr std::size_t kMaxOutbox = std::size_t{256} << 20;
constexpr std::chrono::seconds kLastMoment{2};
constexpr std::size_t kChunk = std::size_t{64} << 10;

enum class Sort { pipe, socket, file };

Sort sort_of(int fd) {
  struct stat about{};
  if (::fstat(fd, &about) < 0) return Sort::pipe;
  if (S_ISREG(about.st_mode)) return Sort::file;
  return S_ISSOCK(about.st_mode) ? Sort::socket : Sort::pipe;
}

// The descriptors are the caller's, and others may hold them too: they are not made
// non-blocking. A pipe that is ready takes PIPE_BUF bytes without blocking.
class Stdio : public std::enable_shared_from_this<Stdio> {
 public:
  Stdio(McpService& service, int in_fd, int out_fd)
      : service_(service),
        in_sort_(sort_of(in_fd)),
        out_sort_(sort_of(out_fd)),
        in_(service.loop(), ::fcntl(in_fd, F_DUPFD_CLOEXEC, 3)),
        out_(service.loop(), ::fcntl(out_fd, F_DUPFD_CLOEXEC, 3)),
        news_(service.loop()) {}

  static Async<void> run(std::shared_ptr<Stdio> self, std::shared_ptr<Cancel> stop) {
    self->peer_ = McpPeer::make(self->service_, "", [weak = std::weak_ptr(self)](auto message) {
      if (const auto stdio = weak.lock()) stdio->send(std::move(message.text));
    });
    begin(self->service_.loop(), write(self));
    {
      const Cancel::Hearing hearing(stop, [self] { self->in_.cancel(); });
      co_await self->read(stop);
    }
    // Who has closed our input may still read what was asked for before. When we were told
    // to stop, that is what has been answered already.
    const Clock::time_point end = Clock::now() + kLastMoment;
    while (!self->broken_ && Clock::now() < end) {
      const bool more_comes = !stop->asked() && self->peer_->busy();
      if (!more_comes && self->outbox_.empty()) break;
      const Clock::time_point soon = Clock::now() + std::chrono::milliseconds(10);
      (void)co_await self->news_.wait_until(std::min(end, soon));
    }
    self->peer_->close();
    // What it had asked for and was not done is cancelled by that, and written down.
    const Clock::time_point last = Clock::now() + kLastMoment;
    while (self->peer_->busy() && Clock::now() < last) {
      const Clock::time_point soon = Clock::now() + std::chrono::milliseconds(10);
      (void)co_await self->news_.wait_until(std::min(last, soon));
    }
    self->broken_ = true;
    self->out_.cancel();
    self->more_to_write();
  }

 private:
  Async<void> read(std::shared_ptr<Cancel> stop) {
    std::string line;
    std::string chunk(kChunk, '\0');
    bool too_long = false;
    while (!stop->asked() && !broken_) {
      // A file is always ready, and cannot be waited for.
      if (in_sort_ != Sort::file) {
        const bool ready = co_await readable(in_);
        if (!ready) co_return;
      }
      const ssize_t n =
          retry([&] { return ::read(in_.native_handle(), chunk.data(), chunk.size()); });
      if (n < 0 && errno == EAGAIN) continue;
      if (n <= 0) break;
      std::string_view rest(chunk.data(), static_cast<std::size_t>(n));
      for (std::size_t end = rest.find('\n'); end != rest.npos; end = rest.find('\n')) {
        line.append(rest.substr(0, end));
        rest.remove_prefix(end + 1);
        if (too_long) line.assign(kMaxMcpMessage + 1, 'x');  // is refused as such
        take(line);
        line.clear();
        too_long = false;
      }
      if (!too_long) line.append(rest);
      if (line.size() > kMaxMcpMessage) too_long = true;
      if (too_long) line.clear();
    }
    if (!line.empty()) take(line);
  }

  void take(std::string_view line) {
    while (line.ends_with('\r') || line.ends_with(' ')) line.remove_suffix(1);
    if (!line.empty()) peer_->receive(line);
  }

  void send(std::string text) {
    if (broken_ || text.empty()) return;
    text += "\n";
    outbox_ += text;
    if (outbox_.size() - sent_ > kMaxOutbox) broken_ = true;
    if (broken_) in_.cancel();
    more_to_write();
  }

  void more_to_write() {
    if (writer_waits_ != nullptr) writer_waits_->raise();
  }

  static Async<void> write(std::shared_ptr<Stdio> self) {
    const auto wake = std::make_shared<Signal>(self->service_.loop());
    self->writer_waits_ = wake;
    while (!self->broken_) {
      if (self->outbox_.empty()) {
        co_await wake->wait();
        continue;
      }
      if (self->out_sort_ != Sort::file) {
        const bool ready = co_await writable(self->out_);
        if (!ready) break;
      }
      const ssize_t n = self->write_some();
      if (n < 0 && errno == EAGAIN) continue;
      if (n <= 0) break;
      self->sent(static_cast<std::size_t>(n));
    }
    self->broken_ = true;
    self->writer_waits_ = nullptr;
    self->in_.cancel();
  }

  // A pipe takes a little at a time, and what is left is not moved up for each.
  void sent(std::size_t size) {
    constexpr std::size_t kWorthMoving = std::size_t{4} << 20;
    sent_ += size;
    if (sent_ < outbox_.size() && sent_ < kWorthMoving) return;
    outbox_.erase(0, sent_);
    sent_ = 0;
  }

  ssize_t write_some() {
    const int fd = out_.native_handle();
    const char* data = outbox_.data() + sent_;
    const std::size_t size = std::min(outbox_.size() - sent_, kChunk);
    return retry([&] {
      if (out_sort_ == Sort::socket) return ::send(fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
      return ::write(fd, data,
                     out_sort_ == Sort::file ? size : std::min<std::size_t>(size, PIPE_BUF));
    });
  }

  McpService& service_;
  Sort in_sort_, out_sort_;
  Stream in_, out_;
  Signal news_;
  std::shared_ptr<McpPeer> peer_;
  std::string outbox_;
  std::size_t sent_ = 0;  // of it
  std::shared_ptr<Signal> writer_waits_;
  bool broken_ = false;  // nobody reads any more
};

}  // namespace

Async<void> serve_stdio(McpService& service, int in_fd, int out_fd, std::shared_ptr<Cancel> stop) {
  const auto stdio = std::make_shared<Stdio>(service, in_fd, out_fd);
  co_await Stdio::run(stdio, std::move(stop));
}

}  // namespace belljar::server
