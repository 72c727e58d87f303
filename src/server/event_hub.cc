#include "server/event_hub.h"

#include <algorithm>
#include <boost/json.hpp>

namespace belljar::server {

std::shared_ptr<EventStream> EventHub::subscribe(Filter filter) {
  std::erase_if(listeners_, [](const Listener& each) { return each.stream->ended(); });
  const auto mine = std::ranges::count_if(listeners_, [&](const Listener& each) {
    return each.filter.principal.name == filter.principal.name;
  });
  if (static_cast<std::size_t>(mine) >= kMaxEventStreams) return nullptr;
  auto stream = std::make_shared<EventStream>(loop_, EventStream::Overflow::ends_stream);
  stream->send("hello", {{"number", number_}});
  listeners_.push_back({.filter = std::move(filter), .stream = stream});
  return stream;
}

void EventHub::publish(std::string_view type, const std::string& session,
                       boost::json::object data) {
  std::erase_if(listeners_, [](const Listener& each) { return each.stream->ended(); });
  if (listeners_.empty()) return;
  const SessionEntry* entry = book_.find_any(session);
  data["number"] = ++number_;
  for (const Listener& listener : listeners_) {
    const Filter& filter = listener.filter;
    if (entry == nullptr || !SessionBook::sees(filter.principal, *entry)) continue;
    if (!filter.session.empty() && filter.session != session) continue;
    if (!filter.types.empty() && !filter.types.contains(std::string(type))) continue;
    data["session_id"] = called_by(filter.principal.name, session);
    listener.stream->send(type, data);
  }
}

void EventHub::close(const std::string& name) {
  for (const Listener& listener : listeners_)
    if (listener.filter.principal.name == name) listener.stream->finish();
}

void EventHub::close() {
  for (const Listener& listener : listeners_) listener.stream->finish();
  listeners_.clear();
}

}  // namespace belljar::server
