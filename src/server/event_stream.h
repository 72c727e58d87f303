// EventStream: server-sent events on their way to one reader. What writes them never
// waits: a reader that is too slow loses its stream, or the events that it can do without.
#pragma once

#include <boost/json/fwd.hpp>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/loop.h"

namespace belljar::server {

inline constexpr std::size_t kMaxQueuedEvents = std::size_t{4} << 20;  // bytes
inline constexpr std::chrono::seconds kHeartbeat{15};  // so that a reader who went is noticed

class EventStream {
 public:
  enum class Overflow {
    ends_stream,  // there are more where it came from, and the reader can ask again
    loses_event,  // the end must arrive; what was lost is counted and said
  };

  EventStream(Loop& loop, Overflow overflow) : changed_(loop), overflow_(overflow) {}
  EventStream(const EventStream&) = delete;
  EventStream& operator=(const EventStream&) = delete;
  ~EventStream() = default;

  void send(std::string_view event, const boost::json::object& data);
  // Whatever is queued: for what every reader must get, once.
  void send_last(std::string_view event, const boost::json::object& data);
  // As it goes over the wire: rendered_event() makes it.
  void send_text(std::string text);
  void send_last_text(std::string text);
  // No more comes.
  void finish();
  bool ended() const { return finished_ || abandoned_; }
  // How many events a slow reader has lost.
  std::uint64_t lost() const { return lost_; }

  // ---- the reader's side ----
  // The next bytes, at the latest a heartbeat; nullopt: that was all.
  Async<std::optional<std::string>> next();
  // The reader has gone.
  void abandon();
  // Hears, once, of a reader that went before the end, or was too slow for it.
  void on_abandon(std::function<void()> listener) { on_abandon_ = std::move(listener); }

 private:
  void queue(std::string text);

  Signal changed_;
  Overflow overflow_;
  std::deque<std::string> queue_;
  std::size_t queued_ = 0;
  std::uint64_t lost_ = 0;
  bool finished_ = false;
  bool abandoned_ = false;
  std::function<void()> on_abandon_;
};

// One event as it goes over the wire.
std::string rendered_event(std::string_view event, const boost::json::object& data);

// Text out of bytes that come in pieces: a character that is cut is kept for the next.
class Utf8Pieces {
 public:
  std::string take(std::string_view bytes);
  std::string rest();

 private:
  std::string held_;
};

}  // namespace belljar::server
