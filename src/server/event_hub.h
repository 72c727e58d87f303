// EventHub: what happens in the server, to all who listen and may know.
#pragma once

#include <boost/json/fwd.hpp>
#include <list>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "server/event_stream.h"
#include "server/session_book.h"

namespace belljar::server {

// Each has a queue and a connection, and lasts.
inline constexpr std::size_t kMaxEventStreams = 32;  // of one token

class EventHub {
 public:
  EventHub(Loop& loop, const SessionBook& book) : loop_(loop), book_(book) {}

  struct Filter {
    Principal principal;
    std::string session;          // its id; empty: all that it sees
    std::set<std::string> types;  // empty: all
  };
  // nullptr: this principal has as many as it may.
  std::shared_ptr<EventStream> subscribe(Filter filter);
  // The book must still know the session.
  void publish(std::string_view type, const std::string& session, boost::json::object data);
  bool is_heard() const { return !listeners_.empty(); }
  std::size_t listeners() const { return listeners_.size(); }
  void close();
  // Of one principal.
  void close(const std::string& name);

 private:
  struct Listener {
    Filter filter;
    std::shared_ptr<EventStream> stream;
  };
  Loop& loop_;
  const SessionBook& book_;
  std::list<Listener> listeners_;
  std::uint64_t number_ = 0;
};

}  // namespace belljar::server
