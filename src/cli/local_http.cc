#include "cli/local_http.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <csignal>

#include "base/fd.h"
#include "base/file.h"
#include "base/printable.h"
#include "base/syscall.h"
#include "cli/server_places.h"
#include "cli/session_loop.h"

namespace belljar::cli {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxAnswer = std::size_t{256} << 20;

Result<Fd> connect_to(const std::string& path) {
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return fail("socket", errno);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return fail("the path " + path + " is too long");
  path.copy(static_cast<char*>(address.sun_path), path.size());
  const auto* to = reinterpret_cast<const sockaddr*>(&address);
  if (retry([&] { return ::connect(fd.get(), to, sizeof address); }) < 0)
    return fail("reach a server at " + path, errno,
                "start `belljar serve`, or name its socket with --socket");
  return fd;
}

struct Asked {
  std::string method, path;
  const json::object* body;
  std::string_view accept;
};

std::string request_text(const Asked& asked, const std::string& key) {
  const std::string content = asked.body != nullptr ? json::serialize(*asked.body) : std::string();
  std::string text = asked.method + " " + asked.path + " HTTP/1.0\r\nHost: localhost\r\nAccept: ";
  text.append(asked.accept).append("\r\nAuthorization: Bearer ").append(key).append("\r\n");
  if (asked.body != nullptr) text += "Content-Type: application/json\r\n";
  return text + "Content-Length: " + std::to_string(content.size()) + "\r\n\r\n" + content;
}

std::string header_in(std::string_view head, std::string_view name) {
  const std::string start = "\r\n" + std::string(name) + ": ";
  const std::size_t at = head.find(start);
  if (at == head.npos) return {};
  head.remove_prefix(at + start.size());
  return std::string(head.substr(0, head.find("\r\n")));
}

int status_in(std::string_view head) {
  int status = 0;
  if (head.size() > 12 && head.starts_with("HTTP/1."))
    (void)std::from_chars(head.data() + 9, head.data() + 12, status);  // else it stays 0
  return status;
}

// One event, without the empty line at its end.
void tell(std::string_view text, const LocalHttp::OnEvent& on_event) {
  std::string_view event;
  std::string_view data;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.starts_with("event: ")) event = line.substr(7);
    if (line.starts_with("data: ")) data = line.substr(6);
  }
  boost::system::error_code error;
  const json::value value = json::parse(data, error);
  if (!error && value.is_object()) on_event(event, value.get_object());
}

struct Incoming {
  LocalHttp::Answer answer;
  std::string bytes;
  bool has_head = false;
  bool is_stream = false;

  void take(std::string_view more, const LocalHttp::OnEvent& on_event) {
    bytes.append(more);
    if (!has_head) take_head();
    if (!is_stream) return;
    for (std::size_t end = bytes.find("\n\n"); end != bytes.npos; end = bytes.find("\n\n")) {
      const std::string event = bytes.substr(0, end);
      bytes.erase(0, end + 2);
      tell(event, on_event);
    }
  }
  void take_head() {
    const std::size_t end = bytes.find("\r\n\r\n");
    if (end == bytes.npos) return;
    has_head = true;
    answer.status = status_in(bytes);
    answer.call = header_in(std::string_view(bytes).substr(0, end), "Belljar-Call");
    is_stream = bytes.substr(0, end).find("text/event-stream") != std::string::npos;
    bytes.erase(0, end + 4);
  }
};

// False: SIGINT came first, which is let through only while this waits.
bool await_news(int fd) {
  sigset_t mask;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  ::sigdelset(&mask, SIGINT);
  pollfd news{.fd = fd, .events = POLLIN, .revents = 0};
  return ::ppoll(&news, 1, nullptr, &mask) >= 0 || errno != EINTR;
}

Result<LocalHttp::Answer> exchange(const std::string& socket, const Asked& asked,
                                   const LocalHttp::OnEvent& on_event,
                                   const LocalHttp::OnInterrupt& interrupted) {
  const Fd fd = TRY(connect_to(socket));
  const std::string key = TRY(owner_key_of(socket));
  if (!write_all(fd.get(), request_text(asked, key))) return fail("write to the server", errno);
  Incoming incoming;
  std::array<char, 65536> piece{};
  bool wants_end = false;
  for (;;) {
    // Before its stream has begun it has no name by which it could be stopped.
    if (wants_end && incoming.has_head) {
      wants_end = false;
      interrupted(incoming.answer.call);
    }
    if (interrupted && !await_news(fd.get())) {
      wants_end = true;
      continue;
    }
    const ssize_t n = retry([&] { return ::read(fd.get(), piece.data(), piece.size()); });
    if (n < 0) return fail("read from the server", errno);
    if (n == 0) break;
    incoming.take({piece.data(), static_cast<std::size_t>(n)}, on_event);
    if (incoming.bytes.size() > kMaxAnswer) return fail("the server says too much");
  }
  if (!incoming.has_head) return fail("the server hung up");
  incoming.answer.body = std::move(incoming.bytes);
  return std::move(incoming.answer);
}

}  // namespace

Result<LocalHttp::Answer> LocalHttp::request(const std::string& method, const std::string& path,
                                             const json::object* body) const {
  return exchange(socket_, {method, path, body, "application/json"}, {}, {});
}

Result<LocalHttp::Answer> LocalHttp::stream(const std::string& path, const json::object& body,
                                            const OnEvent& on_event,
                                            const OnInterrupt& interrupted) const {
  return exchange(socket_, {"POST", path, &body, "text/event-stream"}, on_event, interrupted);
}

std::unexpected<Error> error_of(const LocalHttp::Answer& answer) {
  boost::system::error_code error;
  const json::value value = json::parse(answer.body, error);
  const json::object* object = error ? nullptr : value.if_object();
  const json::value* about = object != nullptr ? object->if_contains("error") : nullptr;
  auto text = [&](std::string_view name) {
    const json::value* found =
        about != nullptr && about->is_object() ? about->get_object().if_contains(name) : nullptr;
    return found != nullptr && found->is_string() ? printable(std::string(found->get_string()))
                                                  : std::string();
  };
  const std::string message = text("message");
  if (message.empty()) return fail("the server answers " + std::to_string(answer.status));
  return fail(message, 0, text("hint"));
}

}  // namespace belljar::cli
