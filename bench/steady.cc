// steady: what work costs inside, once it runs.
//
// The same work outside and in two profiles, in turns. This program is its own
// worker: it is copied into the work folder and times the work itself, so that
// starting a jar is not counted.
//
//   steady [--belljar=PATH] [--rounds=N] [--check] [--doc=docs/benchmarks.md] [--user=NAME]
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <random>

#include "identity.h"
#include "program.h"
#include "samples.h"

namespace bench {
namespace {

namespace fs = std::filesystem;

constexpr int kGetpids = 500'000;
constexpr int kOpens = 50'000;
constexpr int kTreeFolders = 200, kFilesEach = 100;  // 20,000 files for git
constexpr int kSources = 30;

// ---- the worker: does it once and writes how long it took ----

int shell(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str());
}

bool call_getpid() {
  for (int i = 0; i < kGetpids; ++i) ::syscall(SYS_getpid);
  return true;
}

bool open_and_close() {
  for (int i = 0; i < kOpens; ++i) {
    int fd = ::open("tree/d7/f7", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    ::close(fd);
  }
  return true;
}

bool git_status() { return shell("git -C tree status --porcelain") == 0; }

bool make_all() { return shell("make -C sources -j2") == 0; }

struct Work {
  const char* name;
  const char* what;  // for people
  bool (*run)();
  const char* before;  // a command that is not timed
  std::optional<double> target;
};

constexpr Work kWorks[] = {
    {"getpid", "500,000 × getpid", call_getpid, nullptr, {}},
    {"open", "50,000 × open and close", open_and_close, nullptr, {}},
    // Once before: as root the jar's uid is another, which git notices in its index.
    {"git", "git status, 20,000 files", git_status, "git -C tree status", 1.05},
    {"make", "make -j2, 30 C files", make_all, "make -C sources clean", 1.05},
};

int work(std::string_view name) {
  const Work* work =
      std::ranges::find(kWorks, name, [](const Work& w) { return std::string_view(w.name); });
  if (work == std::end(kWorks)) return 2;
  if (work->before != nullptr && shell(work->before) != 0) return 1;
  const Nanoseconds began = now();
  if (!work->run()) return 1;
  std::ofstream("took") << now() - began;
  return 0;
}

// ---- what is worked on ----

void write_file(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

bool make_tree() {
  for (int d = 0; d < kTreeFolders; ++d) {
    const fs::path folder = fs::path("tree") / ("d" + std::to_string(d));
    fs::create_directories(folder);
    for (int f = 0; f < kFilesEach; ++f)
      write_file(folder / ("f" + std::to_string(f)), std::to_string(d * f) + "\n");
  }
  return shell(
             "cd tree && git init -q && git add . && "
             "git -c user.name=bench -c user.email=bench@localhost commit -qm all") == 0;
}

void make_sources() {
  fs::create_directory("sources");
  for (int i = 0; i < kSources; ++i) {
    std::string text = "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n";
    for (int f = 0; f < 20; ++f) {
      const std::string name = "f" + std::to_string(i) + "_" + std::to_string(f);
      text += "int " + name +
              "(int n) { char b[64]; int s = 0; for (int i = 0; i < n; ++i) { "
              "snprintf(b, sizeof b, \"%d\", i); s += atoi(b) * (int)strlen(b); } return s; }\n";
    }
    write_file("sources/u" + std::to_string(i) + ".c", text);
  }
  write_file("sources/Makefile",
             "all: $(patsubst %.c,%.o,$(wildcard *.c))\n"
             "%.o: %.c\n\tcc -O1 -c $< -o $@\n"
             "clean:\n\trm -f *.o\n");
}

// ---- the contest ----

struct Options {
  std::string belljar = "build/release/belljar";
  int rounds = 15;
  bool check = false;
  std::string doc;
  std::string user;
};

struct Place {
  std::string name;
  std::vector<std::string> launcher;  // before the worker's own command
};

struct Cell {
  const Work* work;
  const Place* place;
  std::vector<Nanoseconds> samples{};
  bool failed = false;
};

void run_once(Cell& cell) {
  fs::remove("took");
  std::vector<std::string> words = cell.place->launcher;
  words.insert(words.end(), {"./worker", std::string("--work=") + cell.work->name});
  Nanoseconds took = 0;
  if (run({words}).ok() && std::ifstream("took") >> took)
    cell.samples.push_back(took);
  else
    cell.failed = true;
}

Report measure_here(const Options& options) {
  fs::copy_file("/proc/self/exe", "worker");
  make_sources();
  if (!make_tree()) return {"git could not make the tree.\n", true};
  const Place places[] = {{"outside", {}},
                          {"developer", {options.belljar, "exec", "--profile=developer", "--"}},
                          {"restricted", {options.belljar, "exec", "--profile=restricted", "--"}}};
  std::vector<Cell> cells;
  for (const Work& work : kWorks)
    for (const Place& place : places) cells.push_back({&work, &place});

  std::mt19937 random(1);
  std::vector<Cell*> order;
  for (Cell& cell : cells) order.push_back(&cell);
  for (Cell& cell : cells) run_once(cell);  // once to warm up
  for (Cell& cell : cells) cell.samples.clear();
  for (int round = 0; round < options.rounds; ++round) {
    std::ranges::shuffle(order, random);
    for (Cell* cell : order)
      if (!cell->failed) run_once(*cell);
  }

  Report report{
      "| work | outside ms | developer | restricted | target | |\n|---|---|---|---|---|---|\n"};
  for (std::size_t i = 0; i < cells.size(); i += std::size(places)) {
    const Work& work = *cells[i].work;
    const double outside = quantile(cells[i].samples, 0.5);
    report.text += std::string("| ") + work.what + " | " + fixed(outside / 1e6, 1) + " | ";
    bool missed = false;
    for (std::size_t j = 1; j < std::size(places); ++j) {
      const Cell& cell = cells[i + j];
      const double ratio = quantile(cell.samples, 0.5) / outside;
      report.text += cell.failed ? "failed | " : "× " + fixed(ratio, 3) + " | ";
      missed = missed || cell.failed || (work.target && ratio > *work.target);
    }
    report.text += work.target
                       ? "≤ " + fixed(*work.target, 2) + (missed ? " | missed |\n" : " | met |\n")
                       : std::string(" | |\n");
    report.missed = report.missed || missed;
  }
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
    else if (!value("--belljar=", options.belljar) && !value("--doc=", options.doc) &&
             !value("--user=", options.user))
      return std::nullopt;
  }
  options.belljar = fs::absolute(options.belljar);
  return options;
}

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]).starts_with("--work="))
    return work(std::string_view(argv[1]).substr(7));
  std::optional<Options> options = parse(argc, argv);
  if (!options) {
    std::fprintf(stderr, "steady: unknown argument; see the head of bench/steady.cc\n");
    return 2;
  }
  Report report = measure_as_everyone(options->user, [&] { return measure_here(*options); });
  const std::string text = machine() + "; medians of " + std::to_string(options->rounds) +
                           " rounds. " + version_of({"git", "--version"}) + ", " +
                           version_of({"cc", "--version"}) + ".\n" + report.text;
  std::fputs(text.c_str(), stdout);
  if (!options->doc.empty() && !write_between(options->doc, "steady", text)) {
    std::fprintf(stderr, "steady: no steady markers in %s\n", options->doc.c_str());
    return 2;
  }
  return options->check && report.missed ? 1 : 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return bench::main(argc, argv); }
