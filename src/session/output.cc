#include "session/output.h"

#include <algorithm>

#include "base/utf8.h"

namespace belljar::session {
void Output::append(std::string_view bytes) {
  written_ += bytes.size();
  const std::size_t room = std::min(bytes.size(), head_limit() - head_.size());
  head_.append(bytes.substr(0, room));
  bytes.remove_prefix(room);
  if (bytes.size() >= tail_limit()) {
    tail_ = bytes.substr(bytes.size() - tail_limit());
    return;
  }
  tail_.append(bytes);
  // Moved only when it has doubled, so that many small writes cost little.
  if (tail_.size() > 2 * tail_limit()) tail_.erase(0, tail_.size() - tail_limit());
}

void Output::set_limit(std::size_t limit) {
  if (cut() == 0) {
    const std::string all = head_ + tail_;
    *this = Output(limit);
    append(all);
    return;
  }
  limit_ = std::min(limit_, limit);  // more would put later bytes before earlier ones
  head_.resize(std::min(head_.size(), head_limit()));
  if (tail_.size() > tail_limit()) tail_.erase(0, tail_.size() - tail_limit());
}

std::uint64_t Output::cut() const {
  return written_ - head_.size() - std::min(tail_.size(), tail_limit());
}

std::string Output::text() const {
  const std::string_view tail =
      std::string_view(tail_).substr(tail_.size() - std::min(tail_.size(), tail_limit()));
  if (cut() == 0) return repair_utf8(head_ + std::string(tail));
  const std::string marker = "\n[... " + std::to_string(cut()) + " bytes cut ...]\n";
  return repair_utf8(head_) + marker + repair_utf8(tail);
}

}  // namespace belljar::session
