// broker: what the network costs when it is given out by rules.
//
// The same client and the same servers outside, through belljar's broker, and through the
// proxies of other sandboxes; every way in every round, in an order that changes. "Loopback"
// is 127.0.0.1 outside and, for an address rule, the host's own address, which is on the same
// device. Names may not lead to the host itself, so their server is at the end of a cable
// (bench/wires.h), and stands beside the same cable outside.
//
//   broker [--belljar=PATH] [--rounds=N] [--connects=N] [--mebibytes=N] [--held=N]
//          [--check] [--doc=docs/benchmarks.md] [--user=NAME] [--only=PART OF A NAME]
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <random>

#include "identity.h"
#include "program.h"
#include "samples.h"
#include "traffic.h"
#include "wires.h"

namespace bench {
namespace {

namespace fs = std::filesystem;

constexpr double kAddressTarget = 0.5, kNameTarget = 0.45;  // of loopback outside
constexpr double kConnectTarget = 0.1e6;                    // added, at the median
constexpr std::string_view kLoopback = "outside, loopback";

struct Options {
  std::string belljar = "build/release/belljar";
  int rounds = 9;
  int connects = 300;
  int mebibytes = 1024;
  int held = 1000;
  bool check = false;
  std::string doc;
  std::string user;
  std::string only;
};

enum class Role { outside, ours, peer };

struct Way {
  std::string name;
  Role role;
  Dress dress;
  std::string host;
  std::vector<std::string> launcher{};
  std::string same_outside{};      // the way that differs only in having no sandbox
  std::optional<double> target{};  // share of loopback's throughput
  std::map<Deed, std::vector<Nanoseconds>> samples{};
  std::vector<Nanoseconds> first_bytes{};  // since connect() was called
  bool failed = false;

  double median(Deed deed) const {
    const auto at = samples.find(deed);
    return at == samples.end() ? 0 : quantile(at->second, 0.5);
  }
};

// ---- ways ----

std::vector<std::string> jar(const Options& options, const std::string& rule) {
  return {options.belljar, "exec", "--profile=developer", "--allow-net=" + rule, "--"};
}

std::string ports() { return ":" + std::to_string(kFirstPort) + "-" + std::to_string(kLastPort); }

bool installed(const std::string& program) {
  return version_of({"command", "-v", program}) != "not found";
}

// Each as its makers describe it, with its own proxy.
std::vector<std::string> srt() {
  std::ofstream("srt.json") << R"({"network": {"allowedDomains": [")" << kServerName
                            << R"("], "deniedDomains": []}, "filesystem": {"denyRead": [], )"
                            << R"("allowWrite": ["."], "denyWrite": []}})";
  return {"srt", "-s", "srt.json"};
}

std::vector<std::string> codex() {
  fs::create_directories("codex-home");
  std::ofstream("codex-home/config.toml")
      << "default_permissions = \"bench\"\n[features]\nnetwork_proxy = true\n"
         "[permissions.bench.filesystem]\n\":root\" = \"write\"\n"
         "[permissions.bench.network]\nenabled = true\nmode = \"full\"\n"
         "allow_local_binding = true\n"  // for the addresses of documentation, too
         "[permissions.bench.network.domains]\n\""
      << kServerName << "\" = \"allow\"\n";
  return {"env", "CODEX_HOME=" + fs::absolute("codex-home").string(), "codex", "sandbox", "--"};
}

// No sandbox at all: the least that a proxy written in C costs.
std::vector<std::string> tinyproxy() {
  std::ofstream("tinyproxy.conf") << "Port 8888\nListen 127.0.0.1\nMaxClients 2000\nTimeout 600\n"
                                     "LogLevel Critical\n";
  return {"env", "HTTPS_PROXY=http://127.0.0.1:8888"};
}

std::vector<Way> all_ways(const Options& options) {
  using enum Role;
  const std::string here = kHere, there = kThere, name = kServerName;
  std::vector<Way> ways{
      {"outside, loopback", outside, Dress::plain, "127.0.0.1"},
      {"outside, cable", outside, Dress::plain, there},
      {"address rule, loopback", ours, Dress::plain, here, jar(options, here + ports()),
       "outside, loopback", kAddressTarget},
      {"address rule, cable", ours, Dress::plain, there, jar(options, there + ports()),
       "outside, cable"},
      {"outside, cable, hello", outside, Dress::hello, there},
      {"name rule, cable, hello", ours, Dress::hello, name, jar(options, name + ports()),
       "outside, cable, hello", kNameTarget},
      {"outside, loopback, TLS", outside, Dress::tls, "127.0.0.1"},
      {"outside, cable, TLS", outside, Dress::tls, there},
      {"name rule, cable, TLS", ours, Dress::tls, name, jar(options, name + ports()),
       "outside, cable, TLS", kNameTarget},
  };
  const struct {
    const char* program;
    const char* name;
    std::vector<std::string> (*launcher)();
  } peers[] = {{"srt", "srt", srt},
               {"codex", "codex sandbox", codex},
               {"tinyproxy", "tinyproxy, no sandbox", tinyproxy}};
  for (const auto& peer : peers)
    for (Dress dress : {Dress::hello, Dress::tls}) {
      if (!installed(peer.program)) continue;
      const std::string what = dress == Dress::tls ? ", TLS" : ", hello";
      ways.push_back(
          {peer.name + what, Role::peer, dress, name, peer.launcher(), "outside, cable" + what});
    }
  std::erase_if(ways, [&](const Way& way) { return way.name.find(options.only) == way.name.npos; });
  return ways;
}

// ---- the contest ----

std::vector<std::string> command_of(const Way& way, Deed deed, int count) {
  std::vector<std::string> words = way.launcher;
  words.emplace_back("./worker");
  std::uint64_t size = static_cast<std::uint64_t>(count);
  if (deed == Deed::down || deed == Deed::up) size <<= 20;
  for (std::string& word : words_of({.deed = deed,
                                     .dress = way.dress,
                                     .host = way.host,
                                     .by_proxy = way.role == Role::peer,
                                     .count = size}))
    words.push_back(std::move(word));
  return words;
}

void run_once(Way& way, Deed deed, int count) {
  fs::remove("took");
  way.failed = way.failed || !run({command_of(way, deed, count)}).ok();
  std::ifstream took("took");
  for (Nanoseconds first = 0, second = 0; !way.failed && took >> first;) {
    way.samples[deed].push_back(first);
    if (deed == Deed::connect && took >> second) way.first_bytes.push_back(second);
  }
}

void contest(std::vector<Way>& ways, const Options& options) {
  const std::pair<Deed, int> deeds[] = {{Deed::connect, options.connects},
                                        {Deed::down, options.mebibytes},
                                        {Deed::up, options.mebibytes}};
  std::mt19937 random(1);
  std::vector<Way*> order;
  for (Way& way : ways) order.push_back(&way);
  for (int round = 0; round < options.rounds; ++round)
    for (const auto& [deed, count] : deeds) {
      std::ranges::shuffle(order, random);
      for (Way* way : order)
        if (!way->failed) run_once(*way, deed, count);
    }
}

long resident_kib(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:")) return std::atol(line.c_str() + 6);
  return -1;
}

struct Held {
  long resident = -1;  // KiB; -1: they could not all be held
  Nanoseconds took = 0;
};

Held hold(const Way& way, int count) {
  fs::remove("took");
  fs::remove("let-go");
  Held held;
  const pid_t pid = start({command_of(way, Deed::hold, count)});
  int status = 0;
  while (!(std::ifstream("took") >> held.took)) {
    if (::waitpid(pid, &status, WNOHANG) != 0) return held;
    ::usleep(10'000);
  }
  const long resident = resident_kib(pid);
  std::ofstream("let-go") << "now";
  ::waitpid(pid, &status, 0);
  if (status == 0) held.resident = resident;
  return held;
}

// ---- the table ----

const Way* find(const std::vector<Way>& ways, std::string_view name) {
  const auto at = std::ranges::find(ways, name, &Way::name);
  return at == ways.end() || at->failed ? nullptr : &*at;
}

class Table {
 public:
  Table(const std::vector<Way>& ways, const Options& options) : ways_(ways), options_(options) {}

  Report write() {
    Report report{
        "| way | connect ms: median, p99 | added | first byte ms: median, p99 | down GiB/s | "
        "× loopback | up GiB/s | × loopback | target | |\n|---|---|---|---|---|---|---|---|---|---|"
        "\n"};
    for (const Way& way : ways_) {
      if (way.failed) {
        report.text += "| " + way.name + " | failed | | | | | | | | |\n";
        report.missed = report.missed || way.role != Role::peer;
        continue;
      }
      const double down = share(way, Deed::down), up = share(way, Deed::up), more = added(way);
      bool missed = way.role == Role::ours && more >= kConnectTarget;
      if (way.target) missed = missed || std::min(down, up) < *way.target || !leads(way);
      report.text += "| " + way.name + " | " + times(way.samples.at(Deed::connect)) + " | " +
                     (way.role == Role::outside ? "" : fixed(more / 1e6, 3)) + " | " +
                     times(way.first_bytes) + " | " + rate(way, Deed::down) + " | " +
                     fixed(down, 2) + " | " + rate(way, Deed::up) + " | " + fixed(up, 2) + " | " +
                     target(way) + " | " +
                     (way.role != Role::ours ? ""
                      : missed               ? "missed"
                                             : "met") +
                     " |\n";
      report.missed = report.missed || missed;
    }
    return report;
  }

 private:
  static std::string times(const std::vector<Nanoseconds>& samples) {
    return fixed(quantile(samples, 0.5) / 1e6, 3) + ", " + fixed(quantile(samples, 0.99) / 1e6, 2);
  }
  std::string rate(const Way& way, Deed deed) const {
    return fixed(options_.mebibytes / 1024.0 / (way.median(deed) / 1e9), 2);
  }
  // Its throughput beside that of the same bytes on loopback. A hello is nearly nothing.
  double share(const Way& way, Deed deed) const {
    const std::string tls = way.dress == Dress::tls ? ", TLS" : "";
    const Way* loopback = find(ways_, std::string(kLoopback) + tls);
    return loopback == nullptr ? 0 : loopback->median(deed) / way.median(deed);
  }
  double added(const Way& way) const {
    const Way* same = find(ways_, way.same_outside);
    return same == nullptr ? 0 : way.median(Deed::connect) - same->median(Deed::connect);
  }
  bool leads(const Way& way) const {
    return std::ranges::all_of(ways_, [&](const Way& other) {
      const bool alike = (other.dress == Dress::tls) == (way.dress == Dress::tls);
      return other.role != Role::peer || other.failed || !alike ||
             (way.median(Deed::down) < other.median(Deed::down) &&
              way.median(Deed::up) < other.median(Deed::up));
    });
  }
  static std::string target(const Way& way) {
    if (way.role != Role::ours) return "";
    return "< 0.1 ms added" +
           (way.target ? ", ≥ " + fixed(*way.target, 2) + ", ahead of peers" : std::string());
  }

  const std::vector<Way>& ways_;
  const Options& options_;
};

Report held_connections(const std::vector<Way>& ways, int count) {
  Report report;
  for (const char* name : {"address rule, loopback", "name rule, cable, hello"}) {
    const Way* way = find(ways, name);
    if (way == nullptr) continue;
    const Held one = hold(*way, 1), many = hold(*way, count);
    const bool held = one.resident > 0 && many.resident > 0;
    report.missed = report.missed || !held;
    report.text += std::string("\n") + name + ", " + std::to_string(count) + " connections held: ";
    if (held)
      report.text += "all echo, " + fixed(static_cast<double>(many.took) / 1e6, 0) +
                     " ms until the last; the broker's process " + std::to_string(many.resident) +
                     " KiB resident, " + std::to_string(one.resident) + " with one, so " +
                     fixed(static_cast<double>(many.resident - one.resident) / (count - 1), 1) +
                     " KiB for each.\n";
    else
      report.text += "failed.\n";
  }
  return report;
}

Report measure_here(const Options& options) {
  fs::copy_file("/proc/self/exe", "worker");
  std::vector<Way> ways = all_ways(options);
  const pid_t proxy =
      installed("tinyproxy") ? start({{"tinyproxy", "-d", "-c", "tinyproxy.conf"}}) : -1;
  contest(ways, options);
  if (proxy > 0 && ::kill(proxy, SIGKILL) == 0) ::waitpid(proxy, nullptr, 0);
  Report report = Table(ways, options).write();
  const Report held = held_connections(ways, options.held);
  return {report.text + held.text, report.missed || held.missed};
}

std::optional<Options> parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    auto value = [&](std::string_view name, std::string& to) {
      if (!word.starts_with(name)) return false;
      to = word.substr(name.size());
      return true;
    };
    auto number = [&](std::string_view name, int& to) {
      std::string text;
      if (!value(name, text)) return false;
      to = std::atoi(text.c_str());
      return true;
    };
    if (word == "--check")
      options.check = true;
    else if (!value("--belljar=", options.belljar) && !value("--doc=", options.doc) &&
             !value("--user=", options.user) && !value("--only=", options.only) &&
             !number("--rounds=", options.rounds) && !number("--connects=", options.connects) &&
             !number("--mebibytes=", options.mebibytes) && !number("--held=", options.held))
      return std::nullopt;
  }
  options.belljar = fs::absolute(options.belljar);
  return options;
}

int main(int argc, char** argv) {
  if (argc == 7 && std::string_view(argv[1]) == "--visit")
    return pay(visit_of({argv + 2, argv + argc})) ? 0 : 1;
  const std::optional<Options> options = parse(argc, argv);
  if (!options) {
    std::fprintf(stderr, "broker: unknown argument; see the head of bench/broker.cc\n");
    return 2;
  }
  const Wires wires;
  const Report report = measure_as_everyone(options->user, [&] { return measure_here(*options); });
  const std::string text = machine() + "; " + std::to_string(options->rounds) + " rounds of " +
                           std::to_string(options->connects) + " connections and " +
                           std::to_string(options->mebibytes) +
                           " MiB each way. srt: " + version_of({"srt", "--version"}) +
                           ", codex: " + version_of({"codex", "--version"}) +
                           ", tinyproxy: " + version_of({"tinyproxy", "-v"}) + ".\n" + report.text;
  std::fputs(text.c_str(), stdout);
  if (!options->doc.empty() && !write_between(options->doc, "broker", text)) {
    std::fprintf(stderr, "broker: no broker markers in %s\n", options->doc.c_str());
    return 2;
  }
  return options->check && report.missed ? 1 : 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return bench::main(argc, argv); }
