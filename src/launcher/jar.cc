// What is said to a jar that runs, what it says, and its end.
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "base/syscall.h"
#include "launcher/ending.h"
#include "launcher/launch.h"
#include "launcher/request.h"
#include "launcher/terminal.h"

namespace belljar::launcher {
namespace {

using protocol::Kind;

// How long an init without a pid namespace has to end what it started.
constexpr int kEndMs = 2000;

// How long init has to end with everything else. Mostly that takes a millisecond.
constexpr int kPromptMs = 50;

// Between two further attempts, at most.
constexpr int kLongestWaitMs = 1000;

}  // namespace

Jar::Jar(Jar&& other) noexcept { *this = std::move(other); }

Jar& Jar::operator=(Jar&& other) noexcept {
  std::swap(environment_, other.environment_);
  std::swap(workdir_, other.workdir_);
  std::swap(control_, other.control_);
  std::swap(init_, other.init_);
  std::swap(init_pidfd_, other.init_pidfd_);
  std::swap(ruleset_, other.ruleset_);
  std::swap(above_, other.above_);
  std::swap(group_, other.group_);
  std::swap(phases_, other.phases_);
  std::swap(watchdog_, other.watchdog_);
  std::swap(pid_namespace_, other.pid_namespace_);
  std::swap(user_namespace_, other.user_namespace_);
  std::swap(other_uid_, other.other_uid_);
  std::swap(broker_, other.broker_);
  std::swap(connects_, other.connects_);
  std::swap(hung_up_, other.hung_up_);
  std::swap(next_id_, other.next_id_);
  return *this;
}

Jar::~Jar() { end(); }

Result<std::uint32_t> Jar::spawn(const Command& command) {
  const std::uint32_t id = next_id_++;
  const GuestStdio stdio = TRY(GuestStdio::of(command));
  if (connects_) TRY(stdio.refuse_datagrams());
  if (other_uid_) let_guest_reopen(stdio.fds());
  std::string request = TRY(encode_spawn(command, id, workdir_, environment_));
  TRY(send_all(control_.get(), request, stdio.fds()));
  return id;
}

Status Jar::send(Kind kind, std::uint32_t id, std::uint32_t value) {
  const protocol::Header header{kind, id, value, 0};
  Status sent = send_all(control_.get(), {reinterpret_cast<const char*>(&header), sizeof header});
  if (!sent && sent.error().err == EPIPE) return {};  // it has just ended; next_event tells
  return sent;
}

Status Jar::signal(std::uint32_t id, int signal) {
  return send(Kind::signal, id, static_cast<std::uint32_t>(signal));
}

Status Jar::signal_all(int signal) {
  return send(Kind::signal_all, 0, static_cast<std::uint32_t>(signal));
}

Status Jar::signal_group(pid_t group, int signal) {
  return send(Kind::signal_group, static_cast<std::uint32_t>(group),
              static_cast<std::uint32_t>(signal));
}

std::optional<uid_t> Jar::uid() const {
  if (!other_uid_) return std::nullopt;
  return identity::kFirstJarUid + static_cast<uid_t>(init_);
}

Status Jar::resume(std::uint32_t id, bool give_terminal) {
  return send(Kind::resume, id, give_terminal ? 1 : 0);
}

Result<std::optional<Event>> Jar::next_event() {
  protocol::Header header{};
  // A header is written at once, so a part of one is not init's.
  ssize_t n = retry([&] { return ::recv(control_.get(), &header, sizeof header, MSG_DONTWAIT); });
  if (n < 0 && errno == EAGAIN) return std::nullopt;
  if (n == 0 || (n < 0 && errno == ECONNRESET)) {
    hung_up_ = true;
    return std::nullopt;
  }
  if (n < 0) return fail("read from init", errno);
  if (n != sizeof header) return fail("read from init", EPROTO);
  return Event{header.kind, header.id, header.value};
}

bool Jar::has_ended() const { return hung_up_ || init_ < 0 || ended_within(0); }

bool Jar::ended_within(int wait_ms) const {
  pollfd ended{.fd = init_pidfd_.get(), .events = POLLIN, .revents = 0};
  return retry([&] { return ::poll(&ended, 1, wait_ms); }) > 0;
}

bool Jar::kill(int wait_ms) {
  if (init_ < 0) return true;
  // The end of its socket makes init end (shutdown, since a fork of the caller's may
  // hold a copy); in a pid namespace there is no need to wait until it has noticed.
  // By pidfd: a caller that reaps all its children may have freed the number.
  if (control_) ::shutdown(control_.get(), SHUT_RDWR);
  control_.reset();
  group_.kill();
  if (pid_namespace_) ::syscall(SYS_pidfd_send_signal, init_pidfd_.get(), SIGKILL, nullptr, 0);
  return ended_within(wait_ms);
}

// However long it takes: who is told that a jar has ended may rely on it. It takes long where a
// guest's call cannot be interrupted, as on a file system that does not answer.
void Jar::kill_until_ended() {
  if (kill(pid_namespace_ ? kPromptMs : kEndMs)) return;
  const Namespaces namespaces = user_namespace_ ? Namespaces::pid_and_user : Namespaces::pid;
  for (int wait_ms = kPromptMs;; wait_ms = std::min(2 * wait_ms, kLongestWaitMs)) {
    if (pid_namespace_)
      kill_within(init_pidfd_.get(), namespaces);
    else
      ::syscall(SYS_pidfd_send_signal, init_pidfd_.get(), SIGKILL, nullptr, 0);
    if (ended_within(wait_ms)) return;
  }
}

rusage Jar::end() {
  rusage used{};
  if (init_ < 0) return used;
  kill_until_ended();
  // Its end is the end of everything in its pid namespace, and the kernel waits
  // for that. ECHILD: the caller has reaped it, and what was used is not known.
  siginfo_t ignored{};
  retry([&] {
    return ::syscall(SYS_waitid, P_PIDFD, init_pidfd_.get(), &ignored, WEXITED | __WALL, &used);
  });
  init_ = -1;
  init_pidfd_.reset();
  if (broker_) broker_->stop();
  connects_.reset();
  above_.reset();
  return used;
}

}  // namespace belljar::launcher
