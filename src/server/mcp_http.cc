#include "server/mcp_http.h"

#include <algorithm>
#include <deque>

#include "base/base64.h"
#include "server/secret.h"

namespace belljar::server {
namespace {

constexpr std::size_t kMaxSessions = 1000;
constexpr std::chrono::hours kIdle{1};
constexpr std::size_t kMaxKept = 1000;                        // events of one stream
constexpr std::size_t kMaxKeptBytes = std::size_t{32} << 20;  // the same
constexpr std::size_t kMaxOldStreams = 32;                    // that have ended
constexpr int kRetryMs = 500;

const std::string* header(const McpHttpRequest& request, std::string_view name) {
  const auto found = request.headers.find(name);
  return found != request.headers.end() ? &found->second : nullptr;
}

McpHttpHeaders json_headers() { return {{"Content-Type", "application/json"}}; }

void refuse(const McpHttpAnswer& answer, int status, const json::value& id, const McpError& error) {
  answer.whole(status, json_headers(), response_text(id, std::unexpected(error)));
}

void refuse(const McpHttpAnswer& answer, int status, std::string message) {
  refuse(answer, status, nullptr, {mcp_code::invalid_request, std::move(message), {}});
}

int status_of(int code) {
  switch (code) {
    case 0:
      return 200;
    case mcp_code::no_method:
      return 404;
    case mcp_code::internal:
      return 500;
    default:
      return 400;
  }
}

std::string event_text(const std::string& id, const std::string& data) {
  return (id.empty() ? "" : "id: " + id + "\n") + "event: message\ndata: " + data + "\n\n";
}

// A header's value may be coded where it is not plain ASCII.
std::string header_text(const std::string& value) {
  constexpr std::string_view kBegin = "=?base64?";
  constexpr std::string_view kEnd = "?=";
  if (!value.starts_with(kBegin) || !value.ends_with(kEnd)) return value;
  const std::string_view coded =
      std::string_view(value).substr(kBegin.size(), value.size() - kBegin.size() - kEnd.size());
  return from_base64(coded).value_or(value);
}

// What a proxy goes by must be what we go by.
std::optional<McpError> disagreement(const McpHttpRequest& request, const McpRequest& message) {
  auto mismatch = [](std::string what) {
    return McpError{mcp_code::header_mismatch, std::move(what), {}};
  };
  const json::object* meta = object_at(message.params, "_meta");
  const std::string version = meta != nullptr ? text_at(*meta, kVersionKey) : "";
  const std::string* said = header(request, "mcp-protocol-version");
  if (said == nullptr) return mismatch("the header MCP-Protocol-Version is missing");
  if (!version.empty() && *said != version)
    return mismatch("the header MCP-Protocol-Version is not that of the body");
  const std::string* method = header(request, "mcp-method");
  if (method == nullptr || *method != message.method)
    return mismatch("the header Mcp-Method is not the method of the body");
  std::string_view key;
  if (message.method == "tools/call" || message.method == "prompts/get") key = "name";
  if (message.method == "resources/read") key = "uri";
  if (key.empty()) return std::nullopt;
  const std::string* name = header(request, "mcp-name");
  if (name == nullptr || header_text(*name) != text_at(message.params, key))
    return mismatch("the header Mcp-Name is not that of the body");
  return std::nullopt;
}

}  // namespace

// ---- the stateful era ---------------------------------------------------------

// The events of one request, or of none. Connections come and go.
class McpHttp::Stream {
 public:
  Stream(std::string id, bool resumable) : id_(std::move(id)), resumable_(resumable) {}

  // The last message of a request, if it is the first as well, needs no stream.
  void send(const McpConnection::Send& message) {
    if (message.last && next_ == 0 && answer_ && answer_->whole && !begun_) {
      ended_ = true;
      const McpHttpAnswer answer = *std::exchange(answer_, std::nullopt);
      answer.whole(200, headers_, message.text);
      return;
    }
    if (answer_ && !begun_) begin();
    keep(message.text);
    if (answer_) answer_->event(event_text(event_id(next_ - 1), kept_.back()));
    if (message.last) end();
  }

  void attach(McpHttpAnswer answer, McpHttpHeaders headers) {
    detach();
    headers_ = std::move(headers);
    answer_ = std::move(answer);
    begun_ = false;
  }

  // From after that event.
  void resume(McpHttpAnswer answer, std::size_t after, McpHttpHeaders headers) {
    attach(std::move(answer), std::move(headers));
    begun_ = true;
    answer_->begin(headers_);
    for (std::size_t i = 0; i < kept_.size(); ++i)
      if (first_ + i > after) answer_->event(event_text(event_id(first_ + i), kept_[i]));
    if (ended_) end();
  }

  void begin() {
    begun_ = true;
    answer_->begin(headers_);
    if (!resumable_) return;
    // So that who loses the connection before the first event can come back too.
    if (next_ == 0) ++next_, first_ = 1;
    answer_->event("id: " + event_id(0) + "\nretry: " + std::to_string(kRetryMs) + "\ndata: \n\n");
  }

  void end() {
    ended_ = true;
    if (answer_ && begun_) answer_->end();
    answer_.reset();
  }

  // The connection has gone, or is to go; the stream is still there.
  void detach() {
    if (answer_ && begun_) answer_->end();
    answer_.reset();
  }
  void lost(const Cancel* gone) {
    if (answer_ && answer_->gone.get() == gone) answer_.reset();
  }

  bool ended() const { return ended_; }
  bool attached() const { return answer_.has_value(); }
  const std::string& id() const { return id_; }

 private:
  std::string event_id(std::size_t number) const { return id_ + "-" + std::to_string(number); }
  void keep(const std::string& text) {
    kept_.push_back(text);
    bytes_ += text.size();
    ++next_;
    while (kept_.size() > 1 && (kept_.size() > kMaxKept || bytes_ > kMaxKeptBytes)) {
      bytes_ -= kept_.front().size();
      kept_.pop_front();
      ++first_;
    }
  }

  std::string id_;
  bool resumable_;
  std::optional<McpHttpAnswer> answer_;
  McpHttpHeaders headers_;
  bool begun_ = false;
  bool ended_ = false;
  std::deque<std::string> kept_;
  std::size_t bytes_ = 0;
  std::size_t first_ = 0;  // the number of the first that is kept
  std::size_t next_ = 0;
};

class McpHttp::Session : public std::enable_shared_from_this<Session> {
 public:
  Session(McpService& service, std::string id, std::string principal)
      : id_(std::move(id)), general_(std::make_shared<Stream>("g", true)) {
    peer_ = McpPeer::make(service, std::move(principal),
                          [this](McpConnection::Send message) { send(message); });
  }
  ~Session() {
    peer_->close();
    general_->detach();
    for (auto& [key, stream] : streams_) stream->detach();
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void post(McpMessage message, McpHttpAnswer answer) {
    used_ = Clock::now();
    const auto* request = std::get_if<McpRequest>(&message);
    if (request == nullptr) {
      peer_->receive(std::move(message));
      answer.whole(202, {}, "");
      return;
    }
    const std::string key = key_of(request->id);
    forget_old();
    if (streams_.contains(key) && !streams_[key]->ended()) {
      refuse(answer, 400, "a request with this id is under way");
      return;
    }
    const auto stream = std::make_shared<Stream>(std::to_string(++made_), true);
    streams_[key] = stream;
    attach(stream, std::move(answer), json_headers());
    peer_->receive(std::move(message));
  }

  void get(McpHttpAnswer answer, const std::string* last_event) {
    used_ = Clock::now();
    if (last_event == nullptr) {
      attach(general_, std::move(answer), {});
      general_->begin();
      return;
    }
    const std::size_t dash = last_event->rfind('-');
    const std::string digits = dash != last_event->npos ? last_event->substr(dash + 1) : "";
    const bool good = !digits.empty() && digits.size() < 10 &&
                      digits.find_first_not_of("0123456789") == digits.npos;
    const std::shared_ptr<Stream> stream = good ? find(last_event->substr(0, dash)) : nullptr;
    if (stream == nullptr) {
      refuse(answer, 404, "there is no such event");
      return;
    }
    const std::shared_ptr<Cancel> gone = answer.gone;
    hear(stream, gone);
    stream->resume(std::move(answer), std::stoul(digits), headers_for_session());
  }

  const std::string& id() const { return id_; }
  McpPeer& peer() { return *peer_; }
  bool idle() const { return !peer_->busy() && Clock::now() - used_ > kIdle; }

  // The connection of that request is closed, and the stream is not.
  void drop_connection(const std::string& key) {
    const auto found = streams_.find(key);
    if (found != streams_.end()) found->second->detach();
  }

 private:
  McpHttpHeaders headers_for_session() const { return {{"Mcp-Session-Id", id_}}; }

  void attach(const std::shared_ptr<Stream>& stream, McpHttpAnswer answer, McpHttpHeaders headers) {
    headers.emplace_back("Mcp-Session-Id", id_);
    const std::shared_ptr<Cancel> gone = answer.gone;
    stream->attach(std::move(answer), std::move(headers));
    hear(stream, gone);
  }

  void hear(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Cancel>& gone) {
    std::erase_if(hearings_, [](const auto& entry) { return entry.first->asked(); });
    if (gone == nullptr) return;
    hearings_.emplace_back(gone, std::make_unique<Cancel::Hearing>(
                                     gone, [stream, raw = gone.get()] { stream->lost(raw); }));
    constexpr std::size_t kMany = 256;
    if (hearings_.size() > kMany) hearings_.pop_front();
  }

  void send(const McpConnection::Send& message) {
    const auto found = streams_.find(message.about);
    if (found != streams_.end())
      found->second->send(message);
    else
      general_->send(message);
  }

  std::shared_ptr<Stream> find(const std::string& id) {
    if (id == general_->id()) return general_;
    for (auto& [key, stream] : streams_)
      if (stream->id() == id) return stream;
    return nullptr;
  }

  void forget_old() {
    std::size_t old = 0;
    for (auto& [key, stream] : streams_)
      if (stream->ended()) ++old;
    if (old > kMaxOldStreams)
      std::erase_if(streams_, [](const auto& entry) { return entry.second->ended(); });
  }

  std::string id_;
  std::shared_ptr<Stream> general_;
  std::map<std::string, std::shared_ptr<Stream>> streams_;  // by request
  std::deque<std::pair<std::shared_ptr<Cancel>, std::unique_ptr<Cancel::Hearing>>> hearings_;
  std::shared_ptr<McpPeer> peer_;
  std::uint64_t made_ = 0;
  Clock::time_point used_ = Clock::now();
};

// ---- the stateless era --------------------------------------------------------

// One request, alone.
class McpHttp::Once {
 public:
  Once(McpHttp& owner, McpHttpAnswer answer) : owner_(owner), answer_(std::move(answer)) {}

  void run(std::string principal, McpRequest message) {
    peer_ = McpPeer::make(owner_.service_, std::move(principal),
                          [this](McpConnection::Send said) { send(said); });
    peer_->require_stateless();
    hearing_ = std::make_unique<Cancel::Hearing>(answer_.gone, [this] { leave(); });
    peer_->receive(std::move(message));
  }

  // Takes this object away, in a moment: whoever called may still be in it.
  void leave() {
    peer_->close();
    const auto found = owner_.once_.find(this);
    if (found == owner_.once_.end()) return;
    asio::post(owner_.service_.loop(), [keep = std::move(found->second)] {});
    owner_.once_.erase(found);
  }

 private:
  void send(const McpConnection::Send& message) {
    if (message.last && !begun_) {
      answer_.whole(status_of(message.error), json_headers(), message.text);
    } else {
      if (!std::exchange(begun_, true)) answer_.begin({});
      answer_.event(event_text("", message.text));
      if (message.last) answer_.end();
    }
    if (message.last) leave();
  }

  McpHttp& owner_;
  McpHttpAnswer answer_;
  std::shared_ptr<McpPeer> peer_;
  std::unique_ptr<Cancel::Hearing> hearing_;
  bool begun_ = false;
};

// ---- requests -----------------------------------------------------------------

McpHttp::~McpHttp() { close(); }

void McpHttp::close() {
  sessions_.clear();
  const auto all = once_;
  for (const auto& [raw, once] : all) once->leave();
}

void McpHttp::handle(McpHttpRequest request, McpHttpAnswer answer) {
  forget_idle();
  if (request.method == "POST") return post(request, std::move(answer));
  if (request.method == "GET") return get(request, std::move(answer));
  if (request.method != "DELETE") {
    answer.whole(405, {{"Allow", "GET, POST, DELETE"}}, "");
    return;
  }
  const std::shared_ptr<Session> session = find(request, answer);
  if (session == nullptr) return;
  sessions_.erase(session->id());
  answer.whole(204, {}, "");
}

// Another's session is as one that is not there.
std::shared_ptr<McpHttp::Session> McpHttp::find(const McpHttpRequest& request,
                                                const McpHttpAnswer& answer) {
  const std::string* id = header(request, "mcp-session-id");
  if (id == nullptr) {
    refuse(answer, 400, "the header Mcp-Session-Id is missing: initialize comes first");
    return nullptr;
  }
  const auto found = sessions_.find(*id);
  if (found == sessions_.end() || found->second->peer().principal() != request.principal) {
    refuse(answer, 404, "there is no such session: initialize again");
    return nullptr;
  }
  return found->second;
}

void McpHttp::forget_idle() {
  std::erase_if(sessions_, [](const auto& entry) { return entry.second->idle(); });
}

void McpHttp::post(McpHttpRequest& request, McpHttpAnswer answer) {
  auto message = read_message(request.body);
  if (!message) return refuse(answer, 400, message.error().id, message.error().error);
  const std::string* version = header(request, "mcp-protocol-version");
  const bool says_stateless = version != nullptr && *version == kStatelessVersion;
  if (auto* asked = std::get_if<McpRequest>(&*message)) {
    if (says_stateless || is_stateless(*asked))
      return post_stateless(request, std::move(*asked), std::move(answer));
    if (asked->method == "initialize" && header(request, "mcp-session-id") == nullptr) {
      if (sessions_.size() >= kMaxSessions)
        return refuse(answer, 503, "there are too many sessions");
      const auto session = std::make_shared<Session>(service_, random_hex(16), request.principal);
      sessions_[session->id()] = session;
      return session->post(*std::move(message), std::move(answer));
    }
  }
  const bool known =
      version == nullptr || std::ranges::find(kMcpVersions, *version) != std::end(kMcpVersions);
  if (!known) return refuse(answer, 400, "this version of the protocol is not spoken");
  // A notification of the stateless era belongs to nothing that we keep.
  if (says_stateless) return answer.whole(202, {}, "");
  const std::shared_ptr<Session> session = find(request, answer);
  if (session != nullptr) session->post(*std::move(message), std::move(answer));
}

void McpHttp::post_stateless(const McpHttpRequest& request, McpRequest message,
                             McpHttpAnswer answer) {
  if (const std::optional<McpError> wrong = disagreement(request, message))
    return refuse(answer, 400, message.id, *wrong);
  const auto once = std::make_shared<Once>(*this, std::move(answer));
  once_[once.get()] = once;
  once->run(request.principal, std::move(message));
}

void McpHttp::get(const McpHttpRequest& request, McpHttpAnswer answer) {
  if (header(request, "mcp-session-id") == nullptr) {
    answer.whole(405, {{"Allow", "POST"}}, "");
    return;
  }
  const std::string* accept = header(request, "accept");
  if (accept != nullptr && accept->find("text/event-stream") == accept->npos &&
      accept->find("*/*") == accept->npos)
    return refuse(answer, 406, "only text/event-stream can be had here");
  const std::shared_ptr<Session> session = find(request, answer);
  if (session != nullptr) session->get(std::move(answer), header(request, "last-event-id"));
}

}  // namespace belljar::server
