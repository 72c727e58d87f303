#include "tools/grep.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <iterator>
#include <span>

#include "base/printable.h"
#include "base/utf8.h"
#include "tools/beneath.h"
#include "tools/line_search.h"
#include "tools/pattern.h"

namespace belljar::tools {
namespace {

std::string shown(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.size() <= kMaxShown) return repair_utf8(line);
  std::size_t end = 0;
  for (std::size_t characters = 0; end < line.size() && characters < kMaxShown; ++characters)
    end += std::max<std::size_t>(1, utf8_length(line.substr(end)));
  if (end >= line.size()) return repair_utf8(line);
  return repair_utf8(line.substr(0, end)) + "… (cut)";
}

std::vector<std::string> shown(const std::vector<std::string_view>& lines) {
  std::vector<std::string> texts;
  for (const std::string_view line : lines) texts.push_back(shown(line));
  return texts;
}

// What the threads find, each in a list of its own: the matches of a file lie together there.
class Matches {
 public:
  explicit Matches(std::size_t most) : most_(most) {}

  // False: enough.
  bool add(std::size_t thread, std::string_view inside, const LineMatch& match) {
    if (count_.fetch_add(1) >= most_) return false;
    found_.at(thread).push_back({.path = repair_utf8(inside),
                                 .line = match.number,
                                 .text = shown(match.line),
                                 .before = shown(match.before),
                                 .after = shown(match.after)});
    return true;
  }
  GrepResult result() && {
    std::vector<std::span<GrepMatch>> files;
    for (std::vector<GrepMatch>& list : found_)
      for (auto begin = list.begin(); begin != list.end();) {
        const auto end = std::ranges::find_if(
            begin, list.end(), [&](const GrepMatch& match) { return match.path != begin->path; });
        files.emplace_back(begin, end);
        begin = end;
      }
    std::ranges::sort(
        files, {}, [](std::span<GrepMatch> file) { return std::string_view(file.front().path); });
    GrepResult result{.text = {}, .matches = {}, .files = 0, .truncated = count_ > most_};
    result.matches.reserve(std::min(count_.load(), most_));
    for (const std::span<GrepMatch> file : files)
      std::ranges::move(file, std::back_inserter(result.matches));
    return result;
  }

 private:
  std::size_t most_;
  std::atomic<std::size_t> count_ = 0;
  std::array<std::vector<GrepMatch>, Tree::kThreads> found_;
};

class Include {
 public:
  static Result<Include> parse(const std::optional<std::string>& text) {
    Include include;
    if (!text || text->empty()) return include;
    include.pattern_ = TRY(Pattern::parse(*text));
    include.by_name_ = text->find('/') == text->npos;
    return include;
  }
  bool has(const TreeFile& file) const {
    return !pattern_ || pattern_->matches(by_name_ ? std::string_view(file.name) : file.below);
  }
  bool may_have(std::string_view folder) const {
    return !pattern_ || by_name_ || pattern_->reaches_below(folder);
  }

 private:
  std::optional<Pattern> pattern_;
  bool by_name_ = false;
};

// A line that is context and a match is shown once, as a match.
std::string text_of(const GrepResult& result) {
  std::string text, path;
  auto add = [&](std::uint64_t number, char mark, std::string_view line) {
    text.append(path).push_back(mark);
    text.append(std::to_string(number)).push_back(mark);
    text.append(" ").append(line).append("\n");
  };
  for (std::size_t i = 0; i < result.matches.size(); ++i) {
    const GrepMatch& match = result.matches[i];
    const GrepMatch* before =
        i > 0 && result.matches[i - 1].path == match.path ? &result.matches[i - 1] : nullptr;
    if (before == nullptr) path = printable(match.path);
    const std::uint64_t shown_to = before != nullptr ? before->line + before->after.size() : 0;
    const std::uint64_t first = match.line - match.before.size();
    const bool has_context = !match.before.empty() || !match.after.empty();
    if (has_context && i > 0 && (before == nullptr || first > shown_to + 1)) text += "--\n";
    for (std::size_t k = 0; k < match.before.size(); ++k)
      if (first + k > shown_to) add(first + k, '-', match.before[k]);
    add(match.line, ':', match.text);
    const bool next_is_near =
        i + 1 < result.matches.size() && result.matches[i + 1].path == match.path;
    for (std::size_t k = 0; k < match.after.size(); ++k) {
      const std::uint64_t number = match.line + 1 + k;
      if (next_is_near && number >= result.matches[i + 1].line) break;
      add(number, '-', match.after[k]);
    }
  }
  if (result.matches.empty()) text = "no lines match\n";
  if (result.truncated)
    text += "(" + std::to_string(result.matches.size()) +
            " matches, and there may be more; use a narrower pattern, path or include)\n";
  return text;
}

GrepResult finish(Matches& matches, std::uint64_t files, bool complete) {
  GrepResult result = std::move(matches).result();
  result.files = files;
  result.truncated = result.truncated || !complete;
  result.text = text_of(result);
  return result;
}

}  // namespace

Result<GrepResult> grep(const Workspace& workspace, const GrepCall& call) {
  const Needle needle = TRY(Needle::compile(call.pattern, call.letters));
  const Include include = TRY(Include::parse(call.include));
  const std::size_t context = std::min(call.context, kMaxContext);
  const Place base = TRY(workspace.find_any(call.path.value_or(".")));
  Matches matches(call.most);
  const GiveUp give_up{.stop = call.stop,
                       .deadline = std::chrono::steady_clock::now() + call.limits.time};
  auto gave_up = [&] {
    return call.stop.stop_requested() || std::chrono::steady_clock::now() > give_up.deadline;
  };

  if (!S_ISDIR(base.st.st_mode)) {
    const OpenFile file = TRY(workspace.open_file("grep", *call.path));
    const bool whole =
        LineSearch(needle, context, give_up)
            .search(file.fd.get(), static_cast<std::size_t>(file.st.st_size),
                    [&](const LineMatch& match) { return matches.add(0, file.inside, match); });
    if (!whole && !gave_up())
      return refuse(Kind::binary, printable(file.inside) + " is not text",
                    "look at it with Python or the shell");
    return finish(matches, 1, whole);
  }

  std::array<LineSearch, Tree::kThreads> searches = {LineSearch(needle, context, give_up),
                                                     LineSearch(needle, context, give_up)};
  std::array<std::uint64_t, Tree::kThreads> files = {};
  std::atomic<bool> cut = false;
  auto visit = [&](const TreeFile& file) {
    if (!include.has(file)) return true;
    const Fd fd = open_name(file.folder_fd, file.name, O_RDONLY);
    struct stat st{};
    if (!fd || ::fstat(fd.get(), &st) < 0 || !S_ISREG(st.st_mode)) return true;
    ++files.at(file.thread);
    if (st.st_size == 0) return true;
    bool goes_on = true;
    auto found = [&](const LineMatch& match) {
      return goes_on = matches.add(file.thread, file.inside, match);
    };
    const bool whole =
        searches.at(file.thread).search(fd.get(), static_cast<std::size_t>(st.st_size), found);
    if (!whole && gave_up()) cut = true;  // else it is binary, and passed over
    return goes_on;
  };
  const TreeSearch search{.workspace = workspace,
                          .tool = "grep",
                          .base = base,
                          .enters = [&](std::string_view below) { return include.may_have(below); },
                          .visit = visit,
                          .stop = call.stop,
                          .limits = call.limits};
  const bool complete = TRY(Tree(search).run());
  return finish(matches, files[0] + files[1], complete && !cut);
}

}  // namespace belljar::tools
