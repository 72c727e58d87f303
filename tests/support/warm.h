// A warm interpreter, sessions beneath it, and workers in them. The worker here runs what it is
// sent and answers with what it left in `answer`.
#pragma once

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include "base/file.h"
#include "belljar/belljar.h"
#include "session/warm.h"
#include "support/folder.h"

namespace belljar::testing {

using launcher::Started;
using session::Forked;
using session::Joining;
using session::Warm;

inline constexpr int kPatienceMs = 15'000;

inline constexpr const char* kPythonWorker = R"(
import ctypes, os, random, resource, signal, socket, sys, threading, time

def prepare(preload):
    with open("/tmp/left-by-the-interpreter", "w") as file:
        file.write("its own")
    for name in preload:
        if name == "a thread":
            threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        else:
            __import__(name)

def after_fork():
    pass

def main(control_fd):
    control = socket.socket(fileno=control_fd)
    names = dict(globals())
    while True:
        size = control.recv(4, socket.MSG_WAITALL)
        if len(size) < 4:
            os._exit(0)
        code = control.recv(int.from_bytes(size, "little"), socket.MSG_WAITALL).decode()
        names["answer"] = ""
        try:
            exec(code, names)
        except BaseException as error:
            names["answer"] = type(error).__name__ + ": " + str(error)
        answer = str(names["answer"]).encode()
        control.sendall(len(answer).to_bytes(4, "little") + answer)
)";

inline bool readable(int fd, int timeout_ms = kPatienceMs) {
  pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&ready, 1, timeout_ms) == 1;
}

inline bool becomes(const std::function<bool()>& condition) {
  for (int i = 0; i < kPatienceMs / 5; ++i) {
    if (condition()) return true;
    ::usleep(5000);
  }
  return false;
}

// A worker and our end of its control socket.
class Worker {
 public:
  Worker(Forked worker, Fd control) : forked(std::move(worker)), control_(std::move(control)) {}

  void send(const std::string& code) const {
    const auto size = static_cast<std::uint32_t>(code.size());
    std::string bytes(reinterpret_cast<const char*>(&size), sizeof size);
    bytes += code;
    EXPECT_EQ(::send(control_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), std::ssize(bytes));
  }
  std::string receive() const {
    std::uint32_t size = 0;
    if (!take(&size, sizeof size)) return "(no answer)";
    std::string answer(size, '\0');
    return take(answer.data(), size) ? answer : "(half an answer)";
  }
  std::string ask(const std::string& code) const {
    send(code);
    return receive();
  }
  // The wait status, or -1.
  int status() const {
    if (!readable(forked.status_fd.get())) return -1;
    Result<std::optional<int>> ended = forked.ended();
    return ended && *ended ? **ended : -1;
  }
  bool has_ended() const { return readable(forked.pidfd.get()); }

  Forked forked;

 private:
  bool take(void* into, std::size_t size) const {
    auto* at = static_cast<char*>(into);
    while (size > 0) {
      if (!readable(control_.get())) return false;
      const ssize_t n = ::recv(control_.get(), at, size, 0);
      if (n <= 0) return false;
      at += n;
      size -= static_cast<std::size_t>(n);
    }
    return true;
  }
  Fd control_;
};

class Warmed : public ::testing::Test {
 protected:
  Warmed() { policy.files.workdir = folder.path(); }

  static Policy named(const char* name) { return profile(name).value(); }
  static Status accept(const Plan&) { return {}; }

  Result<Warm> try_warm(const std::vector<std::string>& preload = {}) {
    return Warm::start(policy, caller, host, "/usr/bin/python3", preload, kPythonWorker);
  }
  Warm must_warm() {
    Result<Warm> warm = try_warm();
    if (!warm) throw std::runtime_error(warm.error().message());
    return std::move(*warm);
  }
  Started must_open(const Warm& warm) { return must_open(warm, policy); }
  Started must_open(const Warm& warm, const Policy& of) {
    Result<Started> started = launcher::start(of, caller, host, nullptr, accept, {}, warm.origin());
    if (!started) throw std::runtime_error(started.error().message());
    return std::move(*started);
  }
  static constexpr int kControlToo = -2;  // what it has as its control is its input, too
  Result<Worker> try_fork(Warm& warm, Started& session, int stdin_fd = -1,
                          const std::vector<std::string>& environment = {}) {
    int fds[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
      return fail("socketpair", errno);
    Fd ours(fds[0]), theirs(fds[1]);
    const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    if (stdin_fd == kControlToo) stdin_fd = theirs.get();
    Forked forked = TRY(warm.fork_into(
        session.jar, session.plan, theirs.get(),
        {stdin_fd < 0 ? null.get() : stdin_fd, null.get(), null.get()}, environment));
    return Worker(std::move(forked), std::move(ours));
  }
  Worker must_fork(Warm& warm, Started& session, int stdin_fd = -1,
                   const std::vector<std::string>& environment = {}) {
    Result<Worker> worker = try_fork(warm, session, stdin_fd, environment);
    if (!worker) throw std::runtime_error(worker.error().message());
    return std::move(*worker);
  }
  // What a command that init spawns in the session's jar prints.
  static std::string spawned(Started& session, std::vector<std::string> arguments) {
    Pipe out = make_pipe().value();
    const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    EXPECT_TRUE(session.jar.spawn({.arguments = std::move(arguments),
                                   .stdio_fds = {null.get(), out.write.get(), null.get()},
                                   .leads = false}));
    out.write.reset();
    std::string text;
    char bytes[4096];
    while (readable(out.read.get())) {
      const ssize_t n = ::read(out.read.get(), bytes, sizeof bytes);
      if (n <= 0) break;
      text.append(bytes, static_cast<std::size_t>(n));
    }
    return text;
  }

  Folder folder;
  Policy policy = named("restricted");
  Caller caller = this_process();
  Host host = assume_host();
};

inline std::vector<pid_t> children_of(pid_t pid) {
  const std::string number = std::to_string(pid);
  std::istringstream text(
      read_text("/proc/" + number + "/task/" + number + "/children").value_or(""));
  return {std::istream_iterator<pid_t>(text), {}};
}

inline pid_t interpreter_of(const Warm& warm) {
  const std::vector<pid_t> children = children_of(warm.jar().init_pid());
  return children.size() == 1 ? children[0] : -1;
}

inline std::string link_of(pid_t pid, const std::string& name) {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/ns/" + name, ignored);
}

inline std::string line_of(const std::string& text, const std::string& name) {
  const std::size_t at = text.find("\n" + name + ":\t");
  if (at == text.npos) return "(no " + name + ")";
  return text.substr(at + 1, text.find('\n', at + 1) - at - 1);
}

inline std::ptrdiff_t descriptors_of(pid_t pid) {
  std::error_code ignored;
  std::filesystem::directory_iterator all("/proc/" + std::to_string(pid) + "/fd", ignored);
  return std::distance(begin(all), end(all));
}

}  // namespace belljar::testing
