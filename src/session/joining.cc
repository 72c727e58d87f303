// A fork of the warm interpreter, on its way into a jar and there.
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>

#include "base/file.h"
#include "base/passing.h"
#include "base/pidfd.h"
#include "base/syscall.h"
#include "launcher/join.h"
#include "session/warm.h"

namespace belljar::session {
namespace {

constexpr std::size_t kMaxMessage = 4096;

}  // namespace

Result<std::optional<int>> Forked::ended() const {
  std::uint32_t status = 0;
  const ssize_t n =
      retry([&] { return ::recv(status_fd.get(), &status, sizeof status, MSG_DONTWAIT); });
  if (n < 0 && errno == EAGAIN) return std::nullopt;
  if (n == sizeof status) return static_cast<int>(status);
  return fail("the warm interpreter has ended, so how its worker did is not known");
}

Joining::~Joining() {
  if (!forked_.status_fd) return;  // it has been handed out
  // From here on it cannot say that it is there, and ends; what it has said already is read.
  ::shutdown(forked_.status_fd.get(), SHUT_RDWR);
  std::array<char, kMaxMessage> bytes{};
  if (pidfd() < 0)
    if (Result<Received> first = receive_with_fds(forked_.status_fd.get(), bytes, MSG_DONTWAIT);
        first && !first->fds.empty())
      forked_.pidfd = std::move(first->fds[0]);
  if (pidfd() >= 0) ::syscall(SYS_pidfd_send_signal, pidfd(), SIGKILL, nullptr, 0);
}

bool is_stopped(pid_t pid) {
  const std::string stat = read_text("/proc/" + std::to_string(pid) + "/stat").value_or("");
  const std::size_t name = stat.rfind(')');  // in which anything may stand
  return name != stat.npos && name + 2 < stat.size() && stat[name + 2] == 'T';
}

bool Joining::continue_if_stopped() const {
  if (pidfd() < 0) return false;
  const Result<Pids> pids = pids_of(pidfd());
  if (!pids || !is_stopped(pids->here)) return false;
  ::syscall(SYS_pidfd_send_signal, pidfd(), SIGCONT, nullptr, 0);
  return true;
}

Status Joining::let_go_on() {
  if (!send_with_fds(forked_.status_fd.get(), {&join::kGoOn, 1}, {}))
    return fail("let the worker go on", errno);
  return {};
}

Status Joining::meet(Fd pidfd) {
  const Pids pids = TRY(pids_of(pidfd.get()));
  forked_.pidfd = std::move(pidfd);
  forked_.pid = pids.here;
  forked_.pid_inside = pids.inside;
  if (jar_->group().fd() < 0) return {};
  TRY(jar_->group().adopt(forked_.pid));
  return let_go_on();
}

Status Joining::take_listener(std::uint32_t number) {
  Fd listener(static_cast<int>(::syscall(SYS_pidfd_getfd, forked_.pidfd.get(), number, 0)));
  if (!listener) return fail("take the worker's calls", errno);
  if (jar_->broker() == nullptr) return fail("the jar has no broker");
  jar_->broker()->serve_also(std::move(listener));
  return let_go_on();
}

Result<std::optional<Forked>> Joining::step() {
  for (;;) {
    std::array<char, kMaxMessage> bytes{};
    Result<Received> received = receive_with_fds(forked_.status_fd.get(), bytes, MSG_DONTWAIT);
    if (!received && received.error().err == EAGAIN) return std::nullopt;
    if (!received) return std::unexpected(received.error());
    const std::string_view text(bytes.data(), received->size);
    std::uint32_t number = 0;  // behind the letter of some
    std::memcpy(&number, bytes.data() + 1, sizeof number);
    if (text.empty()) return fail("the warm interpreter ended before its fork had joined");
    if (text.size() == sizeof number) return fail("the fork ended before it had joined the jar");
    if (bytes[0] == join::kBorn && received->fds.size() == 1)
      born_ = std::move(received->fds[0]);
    else if (bytes[0] == join::kPidfd && received->fds.size() == 1)
      TRY(meet(std::move(received->fds[0])));
    else if (bytes[0] == join::kListens && forked_.pidfd)
      TRY(take_listener(number));
    else if (bytes[0] == join::kJoined && forked_.pidfd)
      joined_ = true;
    else if (bytes[0] == join::kFailed && text.size() > sizeof number)
      return fail("join the jar: " + std::string(text.substr(1 + sizeof number)),
                  static_cast<int>(number));
    else
      return fail("join the jar", EPROTO);
    // The last word before how it ended must not be that it was born.
    if (!joined_ || !born_) continue;
    refuse_descriptors(forked_.status_fd.get());  // only its wait status will come
    return std::move(forked_);
  }
}

}  // namespace belljar::session
