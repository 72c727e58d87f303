// warm: how long a session waits for a Python worker, and what the worker costs.
//
// Started in the session's jar, with and without the modules, against a fork of a warm
// interpreter that joins it; in turns. Each is timed until the first byte from the worker.
//
//   warm [--rounds=N] [--python=PATH] [--doc=docs/benchmarks.md] [--user=NAME] [--check]
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <optional>

#include "base/fd.h"
#include "identity.h"
#include "launcher/start.h"
#include "profile.h"
#include "samples.h"
#include "session/warm.h"

namespace bench {
namespace {

using belljar::Fd;
using belljar::launcher::Started;
using belljar::session::Forked;
using belljar::session::Warm;

constexpr int kPatienceMs = 30'000;
constexpr double kTargetMs = 5;

constexpr const char* kWorker = R"(
import os
def prepare(preload):
    import matplotlib
    matplotlib.use("Agg")
    for name in preload: __import__(name)
def after_fork(): pass
def main(fd):
    os.write(fd, b"x")
    os.read(fd, 1)
    os._exit(0)
)";
const std::vector<std::string> kModules = {"numpy", "pandas", "matplotlib.pyplot"};
constexpr const char* kImport =
    "import matplotlib; matplotlib.use('Agg'); import numpy, pandas, matplotlib.pyplot; ";
constexpr const char* kAnswer = "import os; os.write(0, b'x'); os.read(0, 1)";

struct Options {
  int rounds = 100;
  std::string python = "/usr/bin/python3";
  std::string doc, user;
  bool check = false;
};

struct Sockets {
  Fd ours, theirs;
};
Sockets make_sockets() {
  int fds[2] = {-1, -1};
  ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds);
  return {Fd(fds[0]), Fd(fds[1])};
}

bool hears_a_byte(int fd) {
  pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
  char byte = 0;
  return ::poll(&ready, 1, kPatienceMs) == 1 && ::read(fd, &byte, 1) == 1;
}

// Of one process alone, in KiB.
double private_kib(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/smaps_rollup");
  double sum = 0;
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("Private_Clean:") || line.starts_with("Private_Dirty:"))
      sum += std::atof(line.c_str() + line.find(':') + 1);
  return sum;
}

// A way to have a worker: how long it took, and what it holds.
struct Way {
  std::string name;
  std::function<bool(Way&)> once;
  int share = 1;  // of the rounds: one in so many
  std::vector<Nanoseconds> times{};
  std::vector<Nanoseconds> kib{};
  bool failed = false;
};

class Session {
 public:
  Session(Warm& warm, const Options& options) : warm_(warm), options_(options) {
    belljar::Result<Started> started = belljar::launcher::start(
        *policy_of("restricted"), caller_, host_, nullptr,
        [](const belljar::Plan&) { return belljar::Status(); }, {}, warm.origin());
    if (!started) {
      std::fprintf(stderr, "%s\n", started.error().message().c_str());
      std::exit(2);
    }
    started_.emplace(std::move(*started));
  }

  bool spawn(Way& way, const std::string& code) {
    Sockets control = make_sockets();
    const Nanoseconds began = now();
    auto id = started_->jar.spawn({.arguments = {options_.python, "-c", code},
                                   .stdio_fds = {control.theirs.get(), null_.get(), null_.get()},
                                   .leads = false});
    control.theirs.reset();
    if (!id || !hears_a_byte(control.ours.get())) return false;
    way.times.push_back(now() - began);
    control.ours.reset();
    return sees_the_end();
  }
  bool fork(Way& way) {
    Sockets control = make_sockets();
    const Nanoseconds began = now();
    belljar::Result<Forked> forked =
        warm_.fork_into(started_->jar, started_->plan, control.theirs.get(),
                        {null_.get(), null_.get(), null_.get()});
    if (!forked) std::fprintf(stderr, "%s\n", forked.error().message().c_str());
    if (!forked || !hears_a_byte(control.ours.get())) return false;
    way.times.push_back(now() - began);
    way.kib.push_back(static_cast<Nanoseconds>(private_kib(forked->pid)));
    control.ours.reset();
    control.theirs.reset();
    return hears_the_end(*forked);
  }

 private:
  // Its end takes the processor from what is timed next.
  bool sees_the_end() {
    for (;;) {
      pollfd ready{.fd = started_->jar.control_fd(), .events = POLLIN, .revents = 0};
      if (::poll(&ready, 1, kPatienceMs) != 1) return false;
      auto event = started_->jar.next_event();
      if (!event || started_->jar.has_ended()) return false;
      if (*event && (*event)->kind == belljar::protocol::Kind::exited) return true;
    }
  }
  static bool hears_the_end(const Forked& forked) {
    pollfd ready{.fd = forked.status_fd.get(), .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, kPatienceMs) != 1) return false;
    auto status = forked.ended();
    return status && *status == 0;
  }

  Warm& warm_;
  const Options& options_;
  belljar::Caller caller_ = belljar::this_process();
  belljar::Host host_ = belljar::assume_host();
  std::optional<Started> started_;
  Fd null_{::open("/dev/null", O_RDWR | O_CLOEXEC)};
};

// A jar that nothing joins, as a session would start it.
bool start_jar(Way& way, const Warm* above) {
  belljar::Caller caller = belljar::this_process();
  belljar::Host host = belljar::assume_host();
  const Nanoseconds began = now();
  auto started = belljar::launcher::start(
      *policy_of("restricted"), caller, host, nullptr,
      [](const belljar::Plan&) { return belljar::Status(); }, {},
      above != nullptr ? above->origin() : belljar::launcher::Origin{});
  if (!started) return false;
  way.times.push_back(now() - began);
  return true;
}

Report measure_here(const Options& options) {
  belljar::Caller caller = belljar::this_process();
  belljar::Host host = belljar::assume_host();
  const Nanoseconds began = now();
  belljar::Result<Warm> warm =
      Warm::start(*policy_of("restricted"), caller, host, options.python, kModules, kWorker);
  if (!warm) return {warm.error().message() + "\n", true};
  const double ready_ms = static_cast<double>(now() - began) / 1e6;
  Session session(*warm, options);
  Way ways[] = {
      {"python3, nothing imported", [&](Way& way) { return session.spawn(way, kAnswer); }},
      {"python3 with the modules",
       [&](Way& way) { return session.spawn(way, std::string(kImport) + kAnswer); }, 10},
      {"a fork that joins", [&](Way& way) { return session.fork(way); }},
      {"(a jar, by itself)", [&](Way& way) { return start_jar(way, nullptr); }},
      {"(a jar beneath the interpreter's)", [&](Way& way) { return start_jar(way, &*warm); }},
  };
  for (int i = 0; i < options.rounds; ++i)
    for (Way& way : ways)
      if (i % way.share == 0 && !way.once(way)) way.failed = true;

  Report report{.text =
                    "The interpreter is ready after " + fixed(ready_ms, 0) +
                    " ms.\n\n| worker | median ms | p95 ms | private MiB |\n|---|---|---|---|\n"};
  for (const Way& way : ways) {
    report.text += "| " + way.name + " | ";
    report.missed = report.missed || way.failed;
    if (way.failed) {
      report.text += "failed | | |\n";
      continue;
    }
    report.text += fixed(quantile(way.times, 0.5) / 1e6, 2) + " | " +
                   fixed(quantile(way.times, 0.95) / 1e6, 2) + " | " +
                   (way.kib.empty() ? "" : fixed(quantile(way.kib, 0.5) / 1024, 2)) + " |\n";
  }
  report.missed = report.missed || quantile(ways[2].times, 0.5) / 1e6 > kTargetMs;
  return report;
}

std::optional<Options> parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string_view word = argv[i];
    auto value = [&](std::string_view name, std::string& to) {
      if (!word.starts_with(name)) return false;
      to = word.substr(name.size());
      return true;
    };
    std::string rounds;
    if (word == "--check")
      options.check = true;
    else if (value("--rounds=", rounds))
      options.rounds = std::atoi(rounds.c_str());
    else if (!value("--python=", options.python) && !value("--doc=", options.doc) &&
             !value("--user=", options.user))
      return std::nullopt;
  }
  return options;
}

int main(int argc, char** argv) {
  std::optional<Options> options = parse(argc, argv);
  if (!options) {
    std::fprintf(stderr, "warm: unknown argument; see the head of bench/warm.cc\n");
    return 2;
  }
  Report report = measure_as_everyone(options->user, [&] { return measure_here(*options); });
  const std::string text = machine() + "; medians of " + std::to_string(options->rounds) +
                           " rounds; " + version_of({options->python, "--version"}) +
                           " with numpy, pandas and pyplot.\n" + report.text;
  std::fputs(text.c_str(), stdout);
  if (!options->doc.empty() && !write_between(options->doc, "warm", text)) {
    std::fprintf(stderr, "warm: no warm markers in %s\n", options->doc.c_str());
    return 2;
  }
  return options->check && report.missed ? 1 : 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return bench::main(argc, argv); }
