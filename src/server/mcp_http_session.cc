#include "server/mcp_http_session.h"

#include <algorithm>

namespace belljar::server {
namespace {

constexpr std::size_t kMaxOldStreams = 32;  // that have ended
constexpr std::size_t kMaxHearings = 256;
constexpr std::size_t kMaxGeneralBytes = std::size_t{1} << 20;  // of what belongs to no request

}  // namespace

McpHttpSession::McpHttpSession(McpService& service, std::string id, std::string principal,
                               std::chrono::milliseconds idle, OnOld on_old)
    : id_(std::move(id)),
      idle_(idle),
      on_old_(std::move(on_old)),
      general_(std::make_shared<McpHttpStream>("g", kMaxGeneralBytes)) {
  peer_ = McpPeer::make(service, std::move(principal),
                        [this](McpConnection::Send message) { send(std::move(message)); });
}

McpHttpSession::~McpHttpSession() {
  on_old_ = {};  // who would look at all sessions is taking this one away
  peer_->close();
  general_->detach();
  for (auto& [key, stream] : streams_) stream->detach();
}

void McpHttpSession::post(McpMessage message, McpHttpAnswer answer,
                          std::shared_ptr<const void> place) {
  used_ = Clock::now();
  const auto* request = std::get_if<McpRequest>(&message);
  if (request == nullptr) {
    peer_->receive(std::move(message));
    answer.whole(202, {}, "");
    return;
  }
  const std::string key = key_of(request->id);
  forget_old();
  if (streams_.contains(key) && !streams_[key]->ended())
    return refuse(answer, 400, "a request with this id is under way");
  const auto stream = std::make_shared<McpHttpStream>(std::to_string(++made_));
  streams_[key] = stream;
  stream->hold(std::move(place));
  attach(stream, std::move(answer));
  peer_->receive(std::move(message));
}

void McpHttpSession::get(McpHttpAnswer answer, const std::string* last_event) {
  used_ = Clock::now();
  if (last_event == nullptr) {
    attach(general_, std::move(answer));
    general_->begin();
    return;
  }
  const std::size_t dash = last_event->rfind('-');
  const std::string digits = dash != last_event->npos ? last_event->substr(dash + 1) : "";
  const bool good = !digits.empty() && digits.size() < 10 &&
                    digits.find_first_not_of("0123456789") == digits.npos;
  const Stream stream = good ? find(last_event->substr(0, dash)) : nullptr;
  if (stream == nullptr || stream->forgotten())
    return refuse(answer, 404, "there is no such event");
  hear(stream, answer.gone);
  stream->resume(std::move(answer), std::stoul(digits), headers());
}

Clock::duration McpHttpSession::unused_for() const {
  if (peer_->busy() || general_->heard()) return {};
  return Clock::now() - used_;
}

void McpHttpSession::attach(const Stream& stream, McpHttpAnswer answer) {
  const std::shared_ptr<Cancel> gone = answer.gone;
  stream->attach(std::move(answer), headers());
  hear(stream, gone);
}

void McpHttpSession::hear(const Stream& stream, const std::shared_ptr<Cancel>& gone) {
  std::erase_if(hearings_, [](const auto& entry) { return entry.first->asked(); });
  if (gone == nullptr) return;
  // Who keeps the connection keeps this too, and the stream may have been forgotten long since.
  const auto leave = [this, weak = std::weak_ptr(stream), raw = gone.get()] {
    used_ = Clock::now();  // and somebody listened until now
    if (const Stream one = weak.lock()) one->lost(raw);
  };
  hearings_.emplace_back(gone, std::make_unique<Cancel::Hearing>(gone, leave));
  if (hearings_.size() > kMaxHearings) hearings_.pop_front();
}

void McpHttpSession::send(McpConnection::Send message) {
  if (message.last) used_ = Clock::now();
  const auto found = streams_.find(message.about);
  if (message.text.empty() && found == streams_.end()) return;
  const Stream stream = found != streams_.end() ? found->second : general_;
  stream->send(std::move(message));
  if (stream->ended() && on_old_) on_old_();
}

std::vector<McpHttpSession::Stream> McpHttpSession::old_streams() const {
  std::vector<Stream> old;
  for (const auto& [key, stream] : streams_)
    if (stream->ended()) old.push_back(stream);
  return old;
}

McpHttpSession::Stream McpHttpSession::find(const std::string& id) const {
  if (id == general_->id()) return general_;
  const auto is_asked = [&](const auto& entry) { return entry.second->id() == id; };
  const auto found = std::ranges::find_if(streams_, is_asked);
  return found != streams_.end() ? found->second : nullptr;
}

void McpHttpSession::forget_old() {
  const auto has_ended = [](const auto& entry) { return entry.second->ended(); };
  const auto old = static_cast<std::size_t>(std::ranges::count_if(streams_, has_ended));
  if (old > kMaxOldStreams) std::erase_if(streams_, has_ended);
}

}  // namespace belljar::server
