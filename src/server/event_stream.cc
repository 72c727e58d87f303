#include "server/event_stream.h"

#include <boost/json.hpp>

#include "base/utf8.h"

namespace belljar::server {
namespace {

namespace json = boost::json;

constexpr std::size_t kWorthJoining = 64 << 10;  // bytes

// Of a character that may go on, at the end: how many bytes are there. 0: none is cut.
std::size_t cut_at_end(std::string_view bytes) {
  for (std::size_t back = 1; back <= 3 && back <= bytes.size(); ++back) {
    const auto c = static_cast<unsigned char>(bytes[bytes.size() - back]);
    if ((c & 0xc0U) == 0x80U) continue;
    const std::size_t whole = c >= 0xf0U ? 4 : c >= 0xe0U ? 3 : c >= 0xc0U ? 2 : 1;
    return back < whole ? back : 0;
  }
  return 0;
}

}  // namespace

// JSON has no raw line breaks, so that the data is always one line.
std::string rendered_event(std::string_view event, const json::object& data) {
  std::string text = json::serialize(data);
  if (!is_utf8(text)) text = repair_utf8(text);
  return "event: " + std::string(event) + "\ndata: " + text + "\n\n";
}

void EventStream::queue(std::string text) {
  queued_ += text.size();
  queue_.push_back(std::move(text));
  changed_.raise();
}

void EventStream::send(std::string_view event, const json::object& data) {
  if (ended()) return;
  if (queued_ < kMaxQueuedEvents) return queue(rendered_event(event, data));
  ++lost_;
  if (overflow_ == Overflow::loses_event) return;
  queue_.clear();
  queued_ = 0;
  queue(rendered_event("dropped", {{"reason", "this reader is too slow"}}));
  finish();
}

void EventStream::send_last(std::string_view event, const json::object& data) {
  send_last_text(rendered_event(event, data));
}

void EventStream::send_last_text(std::string text) {
  if (ended()) return;
  if (lost_ > 0) queue(rendered_event("lost", {{"events", lost_}}));
  queue(std::move(text));
  finish();
}

void EventStream::send_text(std::string text) {
  if (ended()) return;
  if (queued_ < kMaxQueuedEvents) return queue(std::move(text));
  ++lost_;
  if (overflow_ == Overflow::ends_stream) finish();
}

void EventStream::finish() {
  finished_ = true;
  changed_.raise();
}

void EventStream::abandon() {
  const bool was_dropped = overflow_ == Overflow::ends_stream && lost_ > 0;
  const bool early = !ended() || was_dropped;
  abandoned_ = true;
  queue_.clear();
  queued_ = 0;
  changed_.raise();
  const std::function<void()> listener = std::exchange(on_abandon_, {});
  if (early && listener) listener();
}

Async<std::optional<std::string>> EventStream::next() {
  if (queue_.empty() && !ended()) {
    const Clock::time_point until = Clock::now() + kHeartbeat;
    const bool changed = co_await changed_.wait_until(until);
    if (!changed && queue_.empty() && !ended()) co_return ":\n\n";
  }
  if (queue_.empty() && ended()) co_return std::nullopt;
  // Small ones together: one write instead of many.
  std::string bytes = std::move(queue_.front());
  queue_.pop_front();
  while (!queue_.empty() && bytes.size() + queue_.front().size() <= kWorthJoining) {
    bytes += queue_.front();
    queue_.pop_front();
  }
  queued_ -= bytes.size();
  co_return bytes;
}

std::string Utf8Pieces::take(std::string_view bytes) {
  held_.append(bytes);
  const std::size_t cut = cut_at_end(held_);
  std::string whole = held_.substr(0, held_.size() - cut);
  held_.erase(0, whole.size());
  return repair_utf8(whole);
}

std::string Utf8Pieces::rest() { return repair_utf8(std::exchange(held_, {})); }

}  // namespace belljar::server
