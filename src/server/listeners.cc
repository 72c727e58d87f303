#include "server/listeners.h"

#include <netinet/tcp.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <charconv>
#include <cstring>

#include "base/passing.h"
#include "base/syscall.h"

namespace belljar::server {
namespace {

constexpr int kBacklog = 4096;

std::unexpected<Error> no_address(std::string_view text) {
  return fail("this is no address to listen on: " + std::string(text), 0,
              "127.0.0.1:8077, [::1]:8077 or unix:/path/to/socket");
}

Result<Fd> open_socket(int family) {
  Fd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return fail("make a socket", errno);
  return socket;
}

Result<sockaddr_un> local_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return fail("the path of the socket is too long: " + path, 0,
                "at most 107 bytes; choose a shorter one");
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

const sockaddr* plain(const sockaddr_un& address) {
  const void* untyped = &address;
  return static_cast<const sockaddr*>(untyped);
}

// A socket that nobody answers on was left behind by a server that was killed.
Status remove_left_behind(const sockaddr_un& address) {
  struct stat found{};
  if (::lstat(address.sun_path, &found) < 0) return {};
  if (!S_ISSOCK(found.st_mode))
    return fail(std::string(address.sun_path) + " is there, and is no socket", 0,
                "move it away, or choose another: socket in [server], or --listen=unix:PATH");
  const Fd probe = TRY(open_socket(AF_UNIX));
  if (::connect(probe.get(), plain(address), sizeof address) == 0 || errno != ECONNREFUSED)
    return fail("another server listens on " + std::string(address.sun_path), 0,
                "stop it, or choose another: socket in [server], or --listen=ADDRESS:PORT, whose "
                "local socket has a name of its own");
  if (::unlink(address.sun_path) < 0 && errno != ENOENT)
    return fail("remove " + std::string(address.sun_path), errno);
  return {};
}

Result<Fd> listen_locally(const std::string& path) {
  const sockaddr_un address = TRY(local_address(path));
  TRY(remove_left_behind(address));
  Fd socket = TRY(open_socket(AF_UNIX));
  // The mode of the file is that of the socket; nobody can connect before listen(2).
  if (::fchmod(socket.get(), 0600) < 0) return fail("fchmod of a socket", errno);
  if (::bind(socket.get(), plain(address), sizeof address) < 0)
    return fail("bind " + path, errno, "make its folder first, or choose another");
  if (::chmod(path.c_str(), 0600) < 0) return fail("chmod " + path, errno);
  refuse_descriptors(socket.get());  // and so does each connection
  if (::listen(socket.get(), kBacklog) < 0) return fail("listen on " + path, errno);
  return socket;
}

std::string about_port(int err, const Endpoint& endpoint) {
  Endpoint any = endpoint;
  any.port = 0;
  if (err == EADDRINUSE)
    return "another program listens there, perhaps another `belljar serve`; choose another port: "
           "--listen=" +
           any.text() + " takes one that is free";
  if (err == EACCES) return "ports below 1024 are root's; choose a higher one with --listen";
  if (err == EADDRNOTAVAIL) return "this computer has no such address; `ip address` lists them";
  return {};
}

Result<Fd> listen_on_port(const Endpoint& endpoint) {
  const SocketAddress address = endpoint.to_socket_address();
  Fd socket = TRY(open_socket(address.get()->sa_family));
  const int on = 1;
  (void)::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);  // a convenience
  if (::bind(socket.get(), address.get(), address.size) < 0)
    return fail("bind " + endpoint.text(), errno, about_port(errno, endpoint));
  if (::listen(socket.get(), kBacklog) < 0) return fail("listen on " + endpoint.text(), errno);
  return socket;
}

}  // namespace

Result<ListenAddress> parse_listen(std::string_view text) {
  if (text.starts_with("unix:")) {
    const std::string path(text.substr(5));
    if (!path.starts_with('/') || path.find('\0') != path.npos) return no_address(text);
    return ListenAddress{.path = path, .endpoint = {}};
  }
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return no_address(text);
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), port);
  if (error != std::errc() || end != digits.end()) return no_address(text);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host == "localhost") host = "127.0.0.1";
  const std::optional<IpAddress> address = IpAddress::parse(host);
  if (!address) return no_address(text);
  return ListenAddress{.path = {}, .endpoint = {.address = *address, .port = port}};
}

Result<Fd> open_listener(const ListenAddress& address) {
  if (address.is_local()) return listen_locally(address.path);
  return listen_on_port(address.endpoint);
}

std::string listener_name(int listener_fd, const ListenAddress& address) {
  if (address.is_local()) return "unix:" + address.path;
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  void* untyped = &storage;
  if (::getsockname(listener_fd, static_cast<sockaddr*>(untyped), &size) < 0)
    return address.endpoint.text();
  return Endpoint::from(storage, size).value_or(address.endpoint).text();
}

SocketFile::SocketFile(std::string path) : path_(std::move(path)) {
  struct stat found{};
  if (::lstat(path_.c_str(), &found) < 0) path_.clear();
  device_ = found.st_dev;
  inode_ = found.st_ino;
}

SocketFile::SocketFile(SocketFile&& other) noexcept
    : path_(std::exchange(other.path_, {})), device_(other.device_), inode_(other.inode_) {}

SocketFile::~SocketFile() {
  struct stat found{};
  if (path_.empty() || ::lstat(path_.c_str(), &found) < 0) return;
  // Another server may have taken the name; then it is not ours to remove.
  if (found.st_dev == device_ && found.st_ino == inode_) (void)::unlink(path_.c_str());
}

}  // namespace belljar::server
