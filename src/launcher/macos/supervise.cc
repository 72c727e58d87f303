#include "launcher/macos/supervise.h"

#include <sys/event.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "launcher/macos/usage.h"

namespace belljar::macos {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kTick{100};  // how often the guest's use is looked at
constexpr std::size_t kChunk = std::size_t{1} << 16U;
// After the guest's end its children may still hold the pipes; what they say is not waited for.
constexpr std::chrono::milliseconds kDrain{200};

std::chrono::microseconds time_of(const timeval& value) {
  return std::chrono::seconds(value.tv_sec) + std::chrono::microseconds(value.tv_usec);
}

class Supervisor {
 public:
  explicit Supervisor(Watched watched) : watched_(std::move(watched)) {}

  Result<Outcome> run() {
    queue_ = Fd(::kqueue());
    if (!queue_) return give_up("make a kqueue");
    if (!watch(static_cast<std::uintptr_t>(watched_.pid), EVFILT_PROC, NOTE_EXIT) && errno != ESRCH)
      return give_up("watch the guest");
    for (const Fd* fd : {&watched_.output, &watched_.errors})
      if (*fd && !watch(ident(*fd), EVFILT_READ, 0)) return give_up("watch the guest's output");
    if (watched_.text.empty()) watched_.input.reset();
    if (watched_.input && !watch(ident(watched_.input), EVFILT_WRITE, 0))
      return give_up("watch the guest's input");
    while (!reap()) {
      TRY(wait_once(kTick));
      judge();
    }
    // What it started and left behind in its group.
    ::kill(-watched_.pid, SIGKILL);
    const Clock::time_point until = Clock::now() + kDrain;
    while ((watched_.output || watched_.errors) && Clock::now() < until) TRY(wait_once(kTick));
    return std::move(outcome_);
  }

 private:
  static std::uintptr_t ident(const Fd& fd) { return static_cast<std::uintptr_t>(fd.get()); }

  bool watch(std::uintptr_t what, short filter, unsigned flags) const {
    struct kevent change{};
    EV_SET(&change, what, filter, EV_ADD, flags, 0, nullptr);
    return ::kevent(queue_.get(), &change, 1, nullptr, 0, nullptr) == 0;
  }

  // Our failure: the guest must not go on unwatched.
  std::unexpected<Error> give_up(const char* what) {
    const int err = errno;
    ::kill(-watched_.pid, SIGKILL);
    ::waitpid(watched_.pid, nullptr, 0);
    return fail(what, err);
  }

  Status wait_once(std::chrono::milliseconds longest) {
    std::array<struct kevent, 8> events{};
    const timespec time{.tv_sec = 0, .tv_nsec = longest.count() * 1'000'000};
    const int count =
        ::kevent(queue_.get(), nullptr, 0, events.data(), static_cast<int>(events.size()), &time);
    if (count < 0 && errno != EINTR) return give_up("wait for the guest");
    for (int i = 0; i < count; ++i) {
      const struct kevent& event = events[static_cast<std::size_t>(i)];
      if (event.filter == EVFILT_WRITE) feed();
      if (event.filter != EVFILT_READ) continue;
      const bool output = watched_.output && event.ident == ident(watched_.output);
      if (output)
        take(watched_.output, outcome_.out, outcome_.out_dropped);
      else
        take(watched_.errors, outcome_.err, outcome_.err_dropped);
    }
    return {};
  }

  void feed() {
    const ssize_t size =
        ::write(watched_.input.get(), watched_.text.data(), std::min(watched_.text.size(), kChunk));
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (size > 0) watched_.text.erase(0, static_cast<std::size_t>(size));
    // It does not read any more, or has read all.
    if (size < 0 || watched_.text.empty()) watched_.input.reset();
  }

  void take(Fd& fd, std::string& kept, std::uint64_t& dropped) const {
    std::array<char, kChunk> bytes{};
    const ssize_t size = ::read(fd.get(), bytes.data(), bytes.size());
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (size <= 0) return fd.reset();  // which takes it out of the queue
    const auto got = static_cast<std::size_t>(size);
    const std::size_t room = watched_.max_output - std::min(kept.size(), watched_.max_output);
    kept.append(bytes.data(), std::min(got, room));
    dropped += got - std::min(got, room);
  }

  void judge() {
    if (ended_by_us_) return;
    if (watched_.timeout && Clock::now() - began_ >= *watched_.timeout)
      return end(Reason::timeout, "timeout");
    const Usage usage = usage_of_group(watched_.pid);
    outcome_.peak_memory_kb = std::max(outcome_.peak_memory_kb, usage.memory >> 10U);
    if (watched_.memory_mb && usage.memory >> 20U > *watched_.memory_mb)
      return end(Reason::out_of_memory, "max_memory_mb");
    if (watched_.cpu_secs && usage.cpu > std::chrono::seconds(*watched_.cpu_secs))
      return end(Reason::cpu_limit, "max_cpu_secs");
  }

  void end(Reason reason, const char* limit) {
    ended_by_us_ = true;
    outcome_.reason = reason;
    outcome_.limits_hit.emplace_back(limit);
    ::kill(-watched_.pid, SIGKILL);
  }

  // True: it has ended, and its outcome is known.
  bool reap() {
    int status = 0;
    struct rusage used{};
    const pid_t pid = ::wait4(watched_.pid, &status, WNOHANG, &used);
    if (pid == 0 || (pid < 0 && errno == EINTR)) return false;
    outcome_.wall = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - began_);
    if (pid < 0) return true;  // the caller reaps every child itself: nothing more is known
    outcome_.user_cpu = time_of(used.ru_utime);
    outcome_.system_cpu = time_of(used.ru_stime);
    outcome_.by_signal = WIFSIGNALED(status);
    outcome_.code = outcome_.by_signal ? WTERMSIG(status) : WEXITSTATUS(status);
    if (ended_by_us_) return true;
    if (outcome_.by_signal) outcome_.reason = Reason::signaled;
    if (outcome_.by_signal && outcome_.code == SIGXCPU) outcome_.reason = Reason::cpu_limit;
    if (outcome_.by_signal && outcome_.code == SIGXFSZ) outcome_.reason = Reason::file_size_limit;
    // The shell that becomes the command says so when it cannot.
    if (!outcome_.by_signal && (outcome_.code == 126 || outcome_.code == 127))
      outcome_.reason = Reason::not_started;
    return true;
  }

  Watched watched_;
  Fd queue_;
  Outcome outcome_;
  bool ended_by_us_ = false;
  const Clock::time_point began_ = Clock::now();
};

}  // namespace

Result<Outcome> supervise(Watched watched) { return Supervisor(std::move(watched)).run(); }

}  // namespace belljar::macos
