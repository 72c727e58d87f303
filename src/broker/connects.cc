#include "broker/connects.h"

#include <linux/seccomp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <expected>
#include <optional>
#include <string>
#include <thread>

#include "base/uapi.h"
#include "broker/guest_thread.h"

namespace belljar::broker {
namespace {

using Clock = std::chrono::steady_clock;

// Each takes a descriptor of ours while it waits.
constexpr std::size_t kMaxHeld = 256;
// A server whose queue is full: the kernel does not tell when there is room.
constexpr std::chrono::milliseconds kQueuePause{5};
// How long a guest that was killed may keep what it waited with.
constexpr std::chrono::milliseconds kLook{1000};

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

// A connect of the guest's, taken out of it.
struct Call {
  std::uint64_t id = 0;
  pid_t thread = 0;
  Fd socket;
  int family = 0, type = 0;
  Address address;
  Fd target;  // of a Unix socket: what the address is about
  std::optional<Clock::time_point> until;
  int expires_with = 0;  // the error of the first attempt

  bool is_local() const { return family == AF_UNIX; }
};

int option(int fd, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  return ::getsockopt(fd, SOL_SOCKET, name, &value, &size) < 0 ? -1 : value;
}

// The end of a connect that waits, where the guest has set one.
std::optional<Clock::time_point> deadline_of(int fd) {
  timeval patience{};
  socklen_t size = sizeof patience;
  if (::getsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, &size) < 0) return std::nullopt;
  if (patience.tv_sec == 0 && patience.tv_usec == 0) return std::nullopt;
  return Clock::now() + std::chrono::seconds(patience.tv_sec) +
         std::chrono::microseconds(patience.tv_usec);
}

// An errno, or 0. As the kernel reads it.
int read_address(const seccomp_notif& call, Address& address) {
  const auto size = static_cast<std::int32_t>(call.data.args[2]);
  if (size < 0 || static_cast<std::size_t>(size) > sizeof address.storage) return EINVAL;
  address.size = static_cast<socklen_t>(size);
  if (size == 0) return 0;
  if (read_memory(static_cast<pid_t>(call.pid), call.data.args[1], &address.storage, address.size))
    return 0;
  return errno == EPERM ? EACCES : EFAULT;
}

// What a guest's socket is, by itself and not by its number.
int take_socket(const seccomp_notif& from, Call& call) {
  call.socket = take_descriptor(call.thread, static_cast<int>(from.data.args[0]));
  if (!call.socket) return errno == EPERM ? EACCES : errno;
  call.family = option(call.socket.get(), SO_DOMAIN);
  call.type = option(call.socket.get(), SO_TYPE);
  return call.family < 0 ? ENOTSOCK : 0;
}

// The path of a Unix address, or an errno if it has no path: it is unnamed or abstract.
std::expected<std::string, int> path_in(const Address& address) {
  sockaddr_un local{};
  if (address.size <= offsetof(sockaddr_un, sun_path) || address.size > sizeof local)
    return std::unexpected(EINVAL);
  std::memcpy(&local, &address.storage, address.size);
  if (local.sun_family != AF_UNIX) return std::unexpected(EINVAL);
  const std::size_t most = address.size - offsetof(sockaddr_un, sun_path);
  if (local.sun_path[0] == '\0') return std::unexpected(EPERM);
  return std::string(local.sun_path, ::strnlen(local.sun_path, most));
}

Address address_of(const Fd& socket) {
  sockaddr_un local{};
  local.sun_family = AF_UNIX;
  const std::string path = "/proc/self/fd/" + std::to_string(socket.get());
  path.copy(local.sun_path, sizeof local.sun_path - 1);
  Address address{.storage = {}, .size = sizeof local};
  std::memcpy(&address.storage, &local, sizeof local);
  return address;
}

// Whether a connect with this error would have waited, if the socket did.
bool waits(const Call& call, int error) {
  if (call.is_local()) return error == EAGAIN;  // the server's queue is full
  return error == EINPROGRESS || error == EALREADY;
}

// An errno, or 0. It does not wait. That a socket waits is a flag
// which the guest has too: it is another for a moment, and no call of the guest's but this one
// has to do with a socket that is being connected.
int connect_now(const Call& call) {
  const int fd = call.socket.get();
  const int flags = ::fcntl(fd, F_GETFL);
  const bool streams = call.type == SOCK_STREAM || call.type == SOCK_SEQPACKET;
  const bool patient = streams && (flags & O_NONBLOCK) == 0;
  if (patient) (void)::fcntl(fd, F_SETFL, flags | O_NONBLOCK);  // it is a socket of ours too
  const int error = ::connect(fd, call.address.get(), call.address.size) < 0 ? errno : 0;
  if (patient) (void)::fcntl(fd, F_SETFL, flags);
  return error;
}

bool is_patient(const Call& call) {
  return (::fcntl(call.socket.get(), F_GETFL) & O_NONBLOCK) == 0;
}

class Supervisor {
 public:
  Supervisor(Fd notifications, Fd stop, ConnectRules rules)
      : notifications_(std::move(notifications)),
        stop_(std::move(stop)),
        rules_(std::move(rules)) {}

  void run() {
    // We take turns with the guest on one processor. An older kernel refuses.
    ::ioctl(notifications_.get(), SECCOMP_IOCTL_NOTIF_SET_FLAGS,
            SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
    std::vector<pollfd> news;
    for (;;) {
      news.assign({{.fd = notifications_.get(), .events = POLLIN, .revents = 0},
                   {.fd = stop_.get(), .events = POLLIN, .revents = 0}});
      for (const Call& call : held_)
        if (!call.is_local()) news.push_back({call.socket.get(), POLLOUT, 0});
      if (::poll(news.data(), news.size(), pause()) < 0 && errno != EINTR) return;
      if (news[1].revents != 0 || (news[0].revents & POLLHUP) != 0) return;
      if ((news[0].revents & POLLIN) != 0) receive();
      std::erase_if(held_, [this](Call& call) { return finish(call); });
    }
  }

 private:
  int pause() const {
    if (held_.empty()) return -1;
    const bool polls =
        std::ranges::any_of(held_, [](const Call& call) { return call.is_local() || call.until; });
    return static_cast<int>((polls ? kQueuePause : kLook).count());
  }

  void receive() {
    seccomp_notif from{};
    if (::ioctl(notifications_.get(), SECCOMP_IOCTL_NOTIF_RECV, &from) < 0) return;
    Call call{.id = from.id, .thread = static_cast<pid_t>(from.pid)};
    const int error = take(from, call);
    // Of a guest that has gone its number may be another's, and so may all that was taken.
    if (!is_waiting(call.id)) return;
    if (error != 0) return answer(call.id, error);
    call.until = deadline_of(call.socket.get());
    if (held_.size() >= kMaxHeld) return answer(call.id, EAGAIN);
    if (!finish(call)) held_.push_back(std::move(call));
  }

  int take(const seccomp_notif& from, Call& call) const {
    if (const int error = take_socket(from, call); error != 0) return error;
    if (const int error = read_address(from, call.address); error != 0) return error;
    if (!call.is_local()) return rules_.network ? 0 : EACCES;
    const std::expected<std::string, int> path = path_in(call.address);
    if (!path) return path.error();
    OwnSockets::Found found = rules_.own.find(*path, call.thread);
    call.target = std::move(found.socket);
    if (call.target) call.address = address_of(call.target);
    return found.error;
  }

  // True: it has been answered, or nobody waits for that.
  bool finish(Call& call) {
    if (!is_waiting(call.id)) return true;
    const int error = connect_now(call);
    if (call.expires_with == 0) call.expires_with = error;
    const bool keeps_waiting = waits(call, error) && is_patient(call);
    const bool expired = call.until && Clock::now() >= *call.until;
    if (keeps_waiting && !expired) return false;
    answer(call.id, keeps_waiting ? call.expires_with : error);
    return true;
  }

  bool is_waiting(std::uint64_t id) const {
    return ::ioctl(notifications_.get(), SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
  }

  void answer(std::uint64_t id, int error) const {
    seccomp_notif_resp response{};
    response.id = id;
    response.error = -error;
    // It fails where the guest was killed: then nobody waits.
    ::ioctl(notifications_.get(), SECCOMP_IOCTL_NOTIF_SEND, &response);
  }

  Fd notifications_, stop_;
  ConnectRules rules_;
  std::vector<Call> held_;
};

}  // namespace

Result<std::unique_ptr<Connects>> Connects::start(Fd notifications, ConnectRules rules) {
  Fd stop(::eventfd(0, EFD_CLOEXEC));
  Fd ours(::fcntl(stop.get(), F_DUPFD_CLOEXEC, 0));
  if (!stop || !ours) return fail("eventfd", errno);
  std::thread([supervisor = std::make_unique<Supervisor>(std::move(notifications), std::move(stop),
                                                         std::move(rules))] {
    supervisor->run();
  }).detach();  // with all signals blocked, as now
  return std::unique_ptr<Connects>(new Connects(std::move(ours)));
}

Connects::~Connects() {
  const std::uint64_t stop = 1;
  (void)!::write(stop_.get(), &stop, sizeof stop);  // its counter cannot be full
}

}  // namespace belljar::broker
