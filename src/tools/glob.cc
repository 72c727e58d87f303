#include "tools/glob.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>

#include "base/printable.h"
#include "base/utf8.h"
#include "tools/pattern.h"
#include "tools/walk.h"

namespace belljar::tools {
namespace {

struct Found {
  std::int64_t changed_ns = 0;
  std::string inside;
  bool operator==(const Found&) const = default;
};

bool comes_first(const Found& a, const Found& b) {
  return a.changed_ns != b.changed_ns ? a.changed_ns > b.changed_ns : a.inside < b.inside;
}

// The newest ones so far: a heap whose top is the oldest of them, so memory is bounded.
class Newest {
 public:
  void add(std::int64_t changed_ns, std::string_view inside) {
    ++total;
    if (found.size() == kMaxGlobbed && changed_ns < found.front().changed_ns) return;
    found.push_back({changed_ns, std::string(inside)});
    std::ranges::push_heap(found, comes_first);
    if (found.size() <= kMaxGlobbed) return;
    std::ranges::pop_heap(found, comes_first);
    found.pop_back();
  }

  std::vector<Found> found;
  std::uint64_t total = 0;
};

// The end of what a pattern begins with and means itself.
std::size_t last_plain_slash(const std::string& pattern) {
  return pattern.rfind('/', pattern.find_first_of("*?[{\\"));
}

struct Start {
  std::string folder;
  std::string pattern;
};

Result<Start> start_of(const Workspace& workspace, const GlobCall& call) {
  if (call.pattern.empty())
    return refuse(Kind::bad_pattern, "the pattern is empty", "`**/*` means every file");
  Start start{.folder = call.path.value_or("."), .pattern = call.pattern};
  if (const std::string folder = folder_in(call.pattern); !folder.empty()) {
    start.folder = workspace.whole(folder);
    start.pattern = call.pattern.substr(last_plain_slash(call.pattern) + 1);
  }
  const std::vector<std::string> parts = parts_of(start.pattern);
  if (std::ranges::find(parts, "..") != parts.end())
    return refuse(Kind::bad_pattern, "`..` in a pattern", "give the folder as path");
  return start;
}

std::string text_of(const GlobResult& result) {
  std::string text;
  for (const std::string& path : result.paths) text += printable(path) + "\n";
  if (result.paths.empty()) text = "no files match\n";
  if (result.truncated)
    text += "(the newest " + std::to_string(result.paths.size()) + " of " +
            std::to_string(result.total) + " or more; use a narrower pattern)\n";
  return text;
}

}  // namespace

std::string folder_in(const std::string& pattern) {
  if (!pattern.starts_with('/') && !pattern.starts_with("~/")) return {};
  return pattern.substr(0, std::max<std::size_t>(last_plain_slash(pattern), 1));
}

Result<GlobResult> glob(const Workspace& workspace, const GlobCall& call) {
  const Start start = TRY(start_of(workspace, call));
  const Pattern pattern = TRY(Pattern::parse(start.pattern));
  const Place base = TRY(workspace.find_any(start.folder));

  std::array<Newest, Tree::kThreads> newest;
  const TreeSearch search{
      .workspace = workspace,
      .tool = "glob",
      .base = base,
      .enters = [&](std::string_view below) { return pattern.reaches_below(below); },
      .visit =
          [&](const TreeFile& file) {
            if (!pattern.matches(file.below)) return true;
            struct stat st{};
            if (::fstatat(file.folder_fd, file.name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0)
              newest.at(file.thread)
                  .add(st.st_mtim.tv_sec * 1'000'000'000 + st.st_mtim.tv_nsec, file.inside);
            return true;
          },
      .stop = call.stop,
      .limits = call.limits};
  const bool complete = TRY(Tree(search).run());

  std::vector<Found> found = std::move(newest[0].found);
  std::ranges::move(newest[1].found, std::back_inserter(found));
  std::ranges::sort(found, comes_first);
  GlobResult result;
  result.total = newest[0].total + newest[1].total;
  result.truncated = !complete || found.size() > kMaxGlobbed || result.total > found.size();
  found.resize(std::min(found.size(), kMaxGlobbed));
  for (const Found& one : found) result.paths.push_back(repair_utf8(one.inside));
  result.text = text_of(result);
  return result;
}

}  // namespace belljar::tools
