#include "tools/line_search.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/syscall.h"

namespace belljar::tools {
namespace {

constexpr std::size_t kSmall = std::size_t{64} << 10;  // most files fit
constexpr std::size_t kWindow = std::size_t{1} << 20;

}  // namespace

bool LineSearch::search(int fd, std::size_t size,
                        const std::function<bool(const LineMatch&)>& found) {
  const std::size_t wanted = size < kSmall ? kSmall : kWindow;
  if (window_.size() < wanted) window_.resize(wanted);
  size_ = searched_ = counted_ = 0;
  number_ = 1;
  at_end_ = enough_ = false;
  for (bool first = true;; first = false) {
    const std::size_t before = size_;
    // A whole small file comes with one call; that it ends there, its size has said.
    const ssize_t n =
        retry([&] { return ::read(fd, window_.data() + size_, window_.size() - size_); });
    if (n < 0) return false;
    size_ += static_cast<std::size_t>(n);
    if (std::memchr(window_.data() + before, 0, size_ - before) != nullptr) return !first;
    at_end_ = n == 0 || (first && size_ == size && size_ < window_.size());
    if (!at_end_ && size_ < window_.size()) continue;

    std::size_t whole = size_;
    if (!at_end_) {
      const std::size_t newline = text().rfind('\n');
      if (newline != std::string_view::npos && newline >= searched_) whole = newline + 1;
    }
    // The last lines wait for those that come after them.
    std::size_t end = at_end_ ? whole : back(whole, context_);
    if (end <= searched_) end = whole;
    search_window(end, found);
    if (at_end_ || enough_) return true;
    slide(back(end, context_));
    if (give_up_.stop.stop_requested() || std::chrono::steady_clock::now() > give_up_.deadline)
      return false;
  }
}

// The beginning of the line that is so many before `from`, which begins one.
std::size_t LineSearch::back(std::size_t from, std::size_t lines) const {
  for (; lines > 0 && from > 0; --lines) {
    const std::size_t newline = from < 2 ? std::string_view::npos : text().rfind('\n', from - 2);
    from = newline == std::string_view::npos ? 0 : newline + 1;
  }
  return from;
}

void LineSearch::search_window(std::size_t end,
                               const std::function<bool(const LineMatch&)>& found) {
  const std::string_view block = text().substr(0, end);
  while (searched_ < end && !enough_) {
    const std::size_t at = needle_.find(block, searched_);
    if (at == std::string_view::npos) break;
    const std::size_t before = at == 0 ? std::string_view::npos : block.rfind('\n', at - 1);
    const std::size_t line = before == std::string_view::npos ? 0 : before + 1;
    const std::size_t line_end = std::min(block.find('\n', at), end);
    enough_ = !found(match_at(line, line_end));
    searched_ = line_end + 1;
  }
  searched_ = end;
}

LineMatch LineSearch::match_at(std::size_t begin, std::size_t end) {
  const std::string_view all = text();
  number_ += static_cast<std::uint64_t>(
      std::count(all.begin() + static_cast<std::ptrdiff_t>(counted_),
                 all.begin() + static_cast<std::ptrdiff_t>(std::max(begin, counted_)), '\n'));
  counted_ = std::max(begin, counted_);
  LineMatch match{
      .number = number_, .line = all.substr(begin, end - begin), .before = {}, .after = {}};
  for (std::size_t from = back(begin, context_); from < begin;) {
    const std::size_t newline = all.find('\n', from);
    match.before.push_back(all.substr(from, newline - from));
    from = newline + 1;
  }
  for (std::size_t from = end + 1; from < all.size() && match.after.size() < context_;) {
    const std::size_t newline = std::min(all.find('\n', from), all.size());
    match.after.push_back(all.substr(from, newline - from));
    from = newline + 1;
  }
  return match;
}

void LineSearch::slide(std::size_t keep) {
  // Context that fills half of the window is no help to anybody.
  if (size_ - keep > window_.size() / 2) keep = std::max(keep, searched_);
  number_ += static_cast<std::uint64_t>(
      std::count(text().begin() + static_cast<std::ptrdiff_t>(counted_),
                 text().begin() + static_cast<std::ptrdiff_t>(std::max(keep, counted_)), '\n'));
  counted_ = std::max(keep, counted_) - keep;
  std::memmove(window_.data(), window_.data() + keep, size_ - keep);
  size_ -= keep;
  searched_ -= keep;
}

}  // namespace belljar::tools
