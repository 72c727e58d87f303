#include "cli/approval_servers.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/printable.h"
#include "base/syscall.h"
#include "cli/server_places.h"

namespace belljar::cli {
namespace {

namespace json = boost::json;

constexpr int kPatienceSeconds = 5;
constexpr std::size_t kMaxLine = std::size_t{64} << 20;

// Asked at most once each: what else is in the folder speaks another language.
bool is_approval_socket(std::string_view name) {
  return name.ends_with(".sock") && !is_serve_socket(name);
}

}  // namespace

std::unexpected<Error> ApprovalServer::cannot(const std::string& why, int err,
                                              const std::string& hint) const {
  return fail("the server at " + path_ + " could not be asked: " + why, err, hint);
}

Result<ApprovalServer> ApprovalServer::connect(const std::string& path) {
  ApprovalServer server(path, Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)));
  if (!server.fd_) return server.cannot("make a socket", errno);
  // One that was stopped takes no more when its queue is full: then nothing must wait for ever.
  const timeval patience{.tv_sec = kPatienceSeconds, .tv_usec = 0};
  (void)::setsockopt(server.fd(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return server.cannot("its path is too long");
  path.copy(static_cast<char*>(address.sun_path), path.size());
  const void* untyped = &address;
  if (::connect(server.fd(), static_cast<const sockaddr*>(untyped), sizeof address) < 0) {
    const int err = errno;
    return server.cannot("connect", err,
                         err == ECONNREFUSED
                             ? "a server that was killed leaves its socket: rm " + path
                             : std::string());
  }
  const Result<std::string> key = owner_key_of(path);
  if (!key) return server.cannot(key.error().what, key.error().err, key.error().hint);
  TRY(server.send({{"key", *key}}));
  return server;
}

Status ApprovalServer::send(const json::object& request) {
  const std::string text = json::serialize(request) + "\n";
  std::string_view rest = text;
  while (!rest.empty()) {
    // One that has gone must not end us.
    const ssize_t n =
        retry([&] { return ::send(fd_.get(), rest.data(), rest.size(), MSG_NOSIGNAL); });
    if (n < 0) return cannot("write", errno);
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

Status ApprovalServer::read() {
  std::array<char, 65536> bytes{};
  const ssize_t n = retry([&] { return ::read(fd_.get(), bytes.data(), bytes.size()); });
  if (n < 0) return cannot("read", errno);
  if (n == 0) return cannot("it hung up");
  in_.append(bytes.data(), static_cast<std::size_t>(n));
  if (in_.size() > kMaxLine && in_.find('\n', searched_) == in_.npos)
    return cannot("it says more than " + std::to_string(kMaxLine >> 20) + " MiB at once", 0,
                  "too much waits there: GET /v1/approvals/{id} of `belljar serve` shows one");
  return {};
}

std::optional<json::object> ApprovalServer::take_line() {
  const std::size_t end = in_.find('\n', searched_);
  searched_ = end == in_.npos ? in_.size() : 0;
  if (end == in_.npos) return std::nullopt;
  boost::system::error_code error;
  json::value value = json::parse(in_.substr(0, end), error);
  in_.erase(0, end + 1);
  if (error || !value.is_object()) return json::object();
  return value.get_object();
}

std::optional<json::object> ApprovalServer::take() {
  if (events_.empty()) return take_line();
  json::object first = std::move(events_.front());
  events_.pop_front();
  return first;
}

Result<json::object> ApprovalServer::answer() {
  for (;;) {
    while (std::optional<json::object> ready = take_line()) {
      if (!ready->contains("event")) return *std::move(ready);
      events_.push_back(*std::move(ready));
    }
    pollfd wait{.fd = fd_.get(), .events = POLLIN, .revents = 0};
    const int heard = retry([&] { return ::poll(&wait, 1, kPatienceSeconds * 1000); });
    if (heard < 0) return cannot("poll", errno);
    if (heard == 0)
      return cannot("it has not answered for " + std::to_string(kPatienceSeconds) + " s");
    TRY(read());
  }
}

Result<json::array> ApprovalServer::pending() {
  TRY(send({{"op", "list"}}));
  json::object said = TRY(answer());
  json::value* list = said.if_contains("pending");
  if (list == nullptr || !list->is_array()) return cannot("its answer makes no sense");
  return std::move(list->get_array());
}

Status ApprovalServer::decide(const json::object& decision) {
  TRY(send(decision));
  const json::object said = TRY(answer());
  if (said.contains("ok")) return {};
  const json::value* why = said.if_contains("error");
  if (why == nullptr || !why->is_string()) return cannot("its answer makes no sense");
  return fail(printable(std::string(why->get_string())));
}

Result<ApprovalServers> approval_servers() {
  ApprovalServers all;
  for (const std::string& path : TRY(runtime_sockets(is_approval_socket))) {
    Result<ApprovalServer> server = ApprovalServer::connect(path);
    if (server)
      all.found.push_back(*std::move(server));
    else
      all.lost.push_back(server.error());
  }
  return all;
}

}  // namespace belljar::cli
