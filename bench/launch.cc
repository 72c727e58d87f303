// launch: what starting /bin/true costs, beside other launchers.
//
// Every launcher runs once per round, in an order that changes, so that what
// disturbs the machine disturbs them all: the ratios of one run are what counts.
// Each profile is compared with a bubblewrap command that isolates the same way.
//
//   launch [--belljar=PATH] [--rounds=N] [--check] [--doc=docs/benchmarks.md]
//          [--user=NAME] [--only=TEXT] [--before=PATH]
//
// As root it measures root and, with --user, that user too. --before adds
// another build of belljar to every round. --check exits 1 if a target is missed.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <thread>

#include "bubblewrap.h"
#include "identity.h"
#include "library.h"
#include "profile.h"
#include "program.h"
#include "samples.h"

namespace bench {
namespace {

constexpr const char* kProfiles[] = {"open", "developer", "restricted", "public-bot",
                                     "trusted-maintenance"};
constexpr std::size_t kLargeMb = 2048;
constexpr int kWarmUp = 3;
constexpr int kSlowShare = 20;  // others that take long run in every 20th round

bool installed(const std::string& program) {
  return version_of({"command", "-v", program}) != "not found";
}

struct Options {
  std::string belljar = "build/release/belljar";
  std::string before;
  int rounds = 300;
  bool check = false;
  std::string doc;
  std::string user;
  std::string only;
};

struct Entry {
  std::string name;
  std::string compared_with;          // the entry that the ratio is to; empty: none
  std::optional<double> target;       // of that ratio
  std::function<Nanoseconds()> once;  // -1: failed
  bool slow = false;
  std::vector<Nanoseconds> samples{};
  std::string failure{};
  int failed = 0;  // rounds
};

struct Row {
  std::string name, compared_with;
  double median = 0, p99 = 0, ratio = 0, target = 0;
  std::string failure;
};

std::function<Nanoseconds()> runs(Program program) {
  return [program = std::move(program)] {
    Ran ran = run(program);
    return ran.ok() ? ran.took : -1;
  };
}

class Contest {
 public:
  explicit Contest(const Options& options) : options_(options) {}

  void add(Entry entry) {
    const bool needed = options_.only.empty() ||
                        entry.name.find(options_.only) != entry.name.npos ||
                        entry.name == "posix_spawn";
    if (needed) entries_.push_back(std::move(entry));
  }

  void add_profile(const std::string& profile) {
    belljar::Result<belljar::Plan> plan = plan_of(profile);
    if (!plan) {
      add({.name = "belljar exec, " + profile, .failure = plan.error().message()});
      return;
    }
    Bubblewrap equal = bubblewrap_like(*plan, {"/bin/true"});
    const std::string its_equal = "bubblewrap like " + profile;
    add({.name = its_equal, .once = runs({equal.arguments, equal.data_fds})});
    auto exec = [&](const std::string& program) {
      std::vector<std::string> words = {program, "exec", "--profile=" + profile};
      if (profile == "open") words.push_back("--deny-net");
      words.insert(words.end(), {"--", "/bin/true"});
      return runs({words});
    };
    add({.name = "belljar exec, " + profile,
         .compared_with = its_equal,
         .target = 0.75,
         .once = exec(options_.belljar)});
    if (!options_.before.empty())
      add({.name = "before: belljar exec, " + profile,
           .compared_with = its_equal,
           .once = exec(options_.before)});
    add_library("library, " + profile, its_equal, 0.55, profile, Way::fresh_plan, 0);
    add_library("library, plan made once, " + profile, its_equal, 0.55, profile, Way::one_plan, 0);
    add_library("library, ready jar, " + profile, its_equal, 0.2, profile, Way::ready_jar, 0);
  }

  void add_library(std::string name, std::string compared_with, double target,
                   const std::string& profile, Way way, std::size_t resident_mb) {
    if (!options_.only.empty() && name.find(options_.only) == name.npos) return;
    auto launcher = std::make_shared<Launcher>(profile, way, resident_mb);
    add({.name = std::move(name),
         .compared_with = std::move(compared_with),
         .target = target,
         .once = [launcher] { return launcher->launch(); }});
  }

  void add_others() {
    auto other = [&](std::string name, std::vector<std::string> command, bool slow) {
      std::string failure = installed(command[0]) ? "" : "not installed";
      add({.name = std::move(name),
           .once = runs({std::move(command)}),
           .slow = slow,
           .failure = std::move(failure)});
    };
    other("unshare, all namespaces, proc",
          {"unshare", "--user", "--map-root-user", "--fork", "--pid", "--mount-proc", "--mount",
           "--ipc", "--uts", "--cgroup", "--net", "/bin/true"},
          false);
    other("firejail",
          {"firejail", "--quiet", "--noprofile", "--net=none", "--caps.drop=all", "--seccomp",
           "--private-dev", "--private-tmp", "--", "/bin/true"},
          true);
    other("crun, no cgroups",
          {"crun", "--cgroup-manager=disabled", "run", "--bundle", "crun", "belljar-bench"}, true);
    other("mise x --deny-all", {"mise", "x", "--deny-all", "--", "/bin/true"}, true);
    other("codex sandbox", {"codex", "sandbox", "--", "/bin/true"}, true);
    other("srt", {"srt", "/bin/true"}, true);
  }

  void measure() {
    for (Entry& entry : entries_)
      for (int i = 0; i < kWarmUp && entry.failure.empty(); ++i)
        if (entry.once() < 0) entry.failure = "does not run here";
    std::mt19937 random(1);
    std::vector<Entry*> order;
    for (Entry& entry : entries_)
      if (entry.failure.empty()) order.push_back(&entry);
    for (int round = 0; round < options_.rounds; ++round) {
      std::ranges::shuffle(order, random);
      for (Entry* entry : order) {
        if (entry->slow && round % kSlowShare != 0) continue;
        Nanoseconds took = entry->once();
        if (took >= 0)
          entry->samples.push_back(took);
        else
          ++entry->failed;
      }
    }
  }

  std::vector<Row> rows() const {
    std::vector<Row> rows;
    for (const Entry& entry : entries_) {
      Row row{.name = entry.name,
              .compared_with = entry.compared_with,
              .median = quantile(entry.samples, 0.5),
              .p99 = quantile(entry.samples, 0.99),
              .target = entry.target.value_or(0),
              .failure = entry.failure};
      if (entry.failed > 0) row.failure = "failed in " + std::to_string(entry.failed) + " rounds";
      auto base = std::ranges::find(entries_, entry.compared_with, &Entry::name);
      if (base != entries_.end() && !base->samples.empty())
        row.ratio = row.median / quantile(base->samples, 0.5);
      rows.push_back(std::move(row));
    }
    return rows;
  }

 private:
  const Options& options_;
  std::vector<Entry> entries_;
};

// What the supervisor holds while a guest runs.
struct Resident {
  long rss_kb = 0, pss_kb = 0;
};

Resident supervisor_memory(const std::string& belljar) {
  int pid = start({{belljar, "exec", "--profile=developer", "--", "/bin/sleep", "5"}});
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  Resident resident;
  std::ifstream smaps("/proc/" + std::to_string(pid) + "/smaps_rollup");
  for (std::string word; smaps >> word;) {
    if (word == "Rss:") smaps >> resident.rss_kb;
    if (word == "Pss:") smaps >> resident.pss_kb;
  }
  ::kill(pid, SIGTERM);
  ::waitpid(pid, nullptr, 0);
  return resident;
}

// A bundle that runs /bin/true on the host's own root, read-only.
void make_crun_bundle() {
  std::filesystem::create_directory("crun");
  const char* make =
      "cd crun && crun spec $([ $(id -u) = 0 ] || echo --rootless) >/dev/null 2>&1 && "
      "sed -i 's/\"sh\"/\"\\/bin\\/true\"/; s/\"terminal\": true/\"terminal\": false/;"
      " s/\"path\": \"rootfs\"/\"path\": \"\\/\"/' config.json";
  [[maybe_unused]] int ignored = std::system(make);  // without it the entry is skipped
}

std::vector<Row> measure_here(const Options& options) {
  Contest contest(options);
  contest.add({.name = "posix_spawn", .once = runs({{"/bin/true"}})});
  for (const char* profile : kProfiles) contest.add_profile(profile);
  contest.add_library("library, plan made once, small process", "", 0, "restricted", Way::one_plan,
                      0);
  contest.add_library("library, plan made once, 2 GiB resident",
                      "library, plan made once, small process", 1.2, "restricted", Way::one_plan,
                      kLargeMb);
  make_crun_bundle();
  contest.add_others();
  contest.measure();
  std::vector<Row> rows = contest.rows();

  Resident resident = supervisor_memory(options.belljar);
  rows.push_back({.name = "supervisor resident, KiB",
                  .median = double(resident.rss_kb),
                  .p99 = double(resident.pss_kb)});
  return rows;
}

bool is_memory(const Row& row) { return row.name.starts_with("supervisor"); }

constexpr double kMostResidentKb = 3 * 1024;

bool missed(const Row& row) {
  if (is_memory(row)) return row.median > kMostResidentKb || row.median == 0;
  return row.target != 0 && (!row.failure.empty() || row.ratio == 0 || row.ratio > row.target);
}

std::string table(const std::vector<Row>& rows) {
  std::string text =
      "| launcher | median ms | p99 ms | × posix_spawn | × its bubblewrap | target | |\n"
      "|---|---|---|---|---|---|---|\n";
  double spawn = 0;
  for (const Row& row : rows)
    if (row.name == "posix_spawn") spawn = row.median;
  for (const Row& row : rows) {
    if (is_memory(row)) continue;
    text += "| " + row.name + " | ";
    if (!row.failure.empty()) {
      text += row.failure + " | | | | | |\n";
      continue;
    }
    text += fixed(row.median / 1e6, 2) + " | " + fixed(row.p99 / 1e6, 2) + " | " +
            fixed(row.median / spawn, 1) + " | ";
    const bool to_small = row.name.ends_with("2 GiB resident");
    if (row.ratio != 0) text += fixed(row.ratio, 2) + (to_small ? " × small" : "");
    text += " | " + (row.target != 0 ? "≤ " + fixed(row.target, 2) : "") + " | ";
    if (row.target != 0) text += missed(row) ? "missed" : "met";
    text += " |\n";
  }
  for (const Row& row : rows)
    if (is_memory(row))
      text += "\nSupervisor while a guest runs: " + fixed(row.median, 0) + " KiB resident (Rss), " +
              fixed(row.p99, 0) + " KiB of its own share (Pss); target under 3,072: " +
              (missed(row) ? "missed" : "met") + ".\n";
  return text;
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
    else if (!value("--belljar=", options.belljar) && !value("--before=", options.before) &&
             !value("--doc=", options.doc) && !value("--user=", options.user) &&
             !value("--only=", options.only))
      return std::nullopt;
  }
  options.belljar = std::filesystem::absolute(options.belljar);
  if (!options.before.empty()) options.before = std::filesystem::absolute(options.before);
  return options;
}

std::string versions() {
  return version_of({"bwrap", "--version"}) + ", " + version_of({"unshare", "--version"}) +
         ", firejail: " + version_of({"firejail", "--version"}) +
         ", crun: " + version_of({"crun", "--version"}) +
         ", mise: " + version_of({"mise", "--version"}) +
         ", codex: " + version_of({"codex", "--version"}) +
         ", srt: " + version_of({"srt", "--version"});
}

int main(int argc, char** argv) {
  std::optional<Options> options = parse(argc, argv);
  if (!options) {
    std::fprintf(stderr, "launch: unknown argument; see the head of bench/launch.cc\n");
    return 2;
  }
  Report report = measure_as_everyone(options->user, [&] {
    std::vector<Row> rows = measure_here(*options);
    return Report{table(rows), std::ranges::any_of(rows, missed)};
  });
  const std::string text = machine() + "; " + std::to_string(options->rounds) + " rounds. " +
                           versions() + ".\n" + report.text;
  std::fputs(text.c_str(), stdout);
  if (!options->doc.empty() && !write_between(options->doc, "launch", text)) {
    std::fprintf(stderr, "launch: no launch markers in %s\n", options->doc.c_str());
    return 2;
  }
  return options->check && report.missed ? 1 : 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return bench::main(argc, argv); }
