// The file tools on a tree of 100,000 files, and grep beside ripgrep.
//
//   bench_tools [--files=N] [--rounds=N] [--folder=DIR] [--check] [--doc=FILE]
//
// --check fails when grep takes more than twice as long as ripgrep. The tree is in the page cache
// for both; they take turns, and the median counts. ripgrep's output goes to a pipe that is read.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "base/remove_tree.h"
#include "samples.h"
#include "tools/edit.h"
#include "tools/glob.h"
#include "tools/grep.h"
#include "tools/read.h"
#include "tools/write.h"

namespace {

namespace fs = std::filesystem;
namespace tools = belljar::tools;
using bench::fixed;
using Ms = std::chrono::duration<double, std::milli>;

constexpr double kTarget = 2.0;

struct Options {
  std::size_t files = 100'000;
  int rounds = 7;
  std::string folder = fs::temp_directory_path();
  std::string doc;
  bool check = false;
};

// Source text by the look of it: words of some lengths, indented, up to 8 KiB a file.
void make_tree(const std::string& top, std::size_t files) {
  std::mt19937 random(42);
  std::vector<std::string> words;
  for (int i = 0; i < 2000; ++i) {
    std::string word;
    for (std::size_t length = 2 + random() % 9; length > 0; --length)
      word.push_back(static_cast<char>('a' + random() % 26));
    words.push_back(word);
  }
  std::ofstream(top + "/.gitignore") << "*.o\n/build/\nnode_modules/\n!keep.o\n";
  for (std::size_t i = 0; i < files; ++i) {
    const std::string folder =
        top + "/d" + std::to_string(i / 2000) + "/e" + std::to_string(i / 50 % 40);
    if (i % 50 == 0) fs::create_directories(folder);
    std::string text;
    const std::size_t size = 200 + random() % 4000;
    while (text.size() < size) {
      text.append(random() % 4 * 2, ' ');
      for (std::size_t n = random() % 8; n > 0; --n) text += words[random() % words.size()] + " ";
      text += random() % 10 == 0 ? "return value;\n" : "\n";
    }
    if (i % 10'000 == 5'001) text += "int veryRareIdentifier = 1;\n";
    std::ofstream(folder + "/f" + std::to_string(i) + (i % 20 == 0 ? ".o" : ".cc")) << text;
  }
}

template <class Work>
double time_of(Work work) {
  const auto began = std::chrono::steady_clock::now();
  work();
  return Ms(std::chrono::steady_clock::now() - began).count();
}

double median(std::vector<double> times) {
  std::ranges::sort(times);
  return times[times.size() / 2];
}

// Returns how many lines it printed.
std::size_t run_ripgrep(const std::string& top, const std::string& pattern) {
  int pipe_fds[2];
  if (::pipe2(pipe_fds, O_CLOEXEC) != 0) std::abort();
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], 1);
  std::vector<std::string> words = {
      "rg", "--no-config", "--hidden", "--no-require-git", "--glob=!.git", "-n",
      "-e", pattern,       top};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t pid = 0;
  if (::posix_spawnp(&pid, "rg", &actions, nullptr, arguments.data(), environ) != 0) {
    std::fputs("rg is missing (Debian: ripgrep)\n", stderr);
    std::exit(1);
  }
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(pipe_fds[1]);
  std::vector<char> buffer(1 << 20);
  std::size_t lines = 0;
  for (ssize_t n = 0; (n = ::read(pipe_fds[0], buffer.data(), buffer.size())) > 0;)
    lines += static_cast<std::size_t>(std::count(buffer.begin(), buffer.begin() + n, '\n'));
  ::close(pipe_fds[0]);
  ::waitpid(pid, nullptr, 0);
  return lines;
}

struct Report {
  std::string text;
  bool missed = false;
};

void compare(Report& report, const tools::Workspace& workspace, const Options& options,
             const std::string& top, const char* title, const std::string& pattern,
             std::size_t most) {
  std::vector<double> ours, theirs;
  std::size_t found = 0;
  std::size_t printed = 0;
  for (int i = 0; i < options.rounds; ++i) {
    ours.push_back(time_of([&] {
      const tools::GrepCall call{.pattern = pattern, .most = most};
      found = tools::grep(workspace, call)->matches.size();
    }));
    theirs.push_back(time_of([&] { printed = run_ripgrep(top, pattern); }));
  }
  const double ratio = median(ours) / median(theirs);
  report.missed |= ratio > kTarget;
  report.text += "| grep " + std::string(title) + " | " + fixed(median(ours), 1) + " | " +
                 std::to_string(found) + " | " + fixed(median(theirs), 1) + " | " +
                 std::to_string(printed) + " | " + fixed(ratio, 2) + " | ≤ " + fixed(kTarget, 0) +
                 (ratio <= kTarget ? " | met |\n" : " | missed |\n");
}

template <class Work>
void measure(Report& report, const char* title, const Options& options, Work work) {
  std::vector<double> times;
  for (int i = 0; i < options.rounds * 3; ++i) times.push_back(time_of(work));
  report.text += "| " + std::string(title) + " | " + fixed(median(times), 3) + " | | | | | | |\n";
}

Options parse(int count, char** words) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const std::string value = word.substr(std::min(word.size(), word.find('=') + 1));
    if (word.starts_with("--files="))
      options.files = std::stoul(value);
    else if (word.starts_with("--rounds="))
      options.rounds = std::stoi(value);
    else if (word.starts_with("--folder="))
      options.folder = value;
    else if (word.starts_with("--doc="))
      options.doc = value;
    else if (word == "--check")
      options.check = true;
    else
      std::exit((std::fprintf(stderr, "unknown option %s\n", word.c_str()), 2));
  }
  return options;
}

}  // namespace

int main(int count, char** words) {
  const Options options = parse(count, words);
  std::string top = options.folder + "/belljar-bench-XXXXXX";
  if (::mkdtemp(top.data()) == nullptr) return 1;
  make_tree(top, options.files);
  const tools::Workspace workspace = *tools::Workspace::open(
      {{.inside = "/workspace", .outside = top, .writable = true}}, "/workspace");
  (void)tools::grep(workspace, {.pattern = "x{9}y"});  // into the page cache

  Report report;
  report.text = bench::machine() + "; a tree of " + std::to_string(options.files) +
                " files, medians of " + std::to_string(options.rounds) + " rounds. " +
                bench::version_of({"rg", "--version"}) +
                ".\n\n| | ms | lines | ripgrep, ms | lines | ratio | target | |\n"
                "|---|---|---|---|---|---|---|---|\n";
  const std::size_t all = 100'000'000;
  compare(report, workspace, options, top, "rare (`veryRareIdentifier`)", "veryRareIdentifier",
          100);
  compare(report, workspace, options, top, "rare, regex (`very\\w+Identifier`)",
          "very\\w+Identifier", 100);
  compare(report, workspace, options, top, "none (`notInAnyFile`)", "notInAnyFile", 100);
  compare(report, workspace, options, top, "none, regex (`[0-9]{4}-[0-9]{2}`)", "[0-9]{4}-[0-9]{2}",
          100);
  compare(report, workspace, options, top, "common (`return`), first 100", "return", 100);
  compare(report, workspace, options, top, "common (`return`), all of them", "return", all);
  measure(report, "glob `**/*.cc`", options,
          [&] { (void)tools::glob(workspace, {.pattern = "**/*.cc"}); });
  measure(report, "glob `d7/**/*.cc`", options,
          [&] { (void)tools::glob(workspace, {.pattern = "d7/**/*.cc"}); });
  measure(report, "read", options,
          [&] { (void)tools::read(workspace, {.path = "d1/e1/f2051.cc"}); });
  measure(report, "write", options,
          [&] { (void)tools::write(workspace, {.path = "d1/e1/new", .content = "x"}); });
  int turn = 0;
  measure(report, "edit", options, [&] {
    const bool back = ++turn % 2 == 0;
    (void)tools::edit(
        workspace,
        {.path = "d1/e1/new", .old_string = back ? "y" : "x", .new_string = back ? "x" : "y"});
  });
  belljar::remove_tree(top);
  std::fputs(report.text.c_str(), stdout);
  if (!options.doc.empty() && !bench::write_between(options.doc, "tools", report.text)) {
    std::fprintf(stderr, "bench_tools: no tools markers in %s\n", options.doc.c_str());
    return 2;
  }
  return options.check && report.missed ? 1 : 0;
}
