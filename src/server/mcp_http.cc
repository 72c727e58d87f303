#include "server/mcp_http.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "base/random.h"

namespace belljar::server {
namespace {

// Clients seldom say that they have gone. One that was not heard of for so long makes room for
// the next of its principal.
constexpr std::chrono::minutes kUnused{5};

}  // namespace

// ---- the stateless era --------------------------------------------------------

// One request, alone.
class McpHttp::Once {
 public:
  Once(McpHttp& owner, McpHttpAnswer answer, std::shared_ptr<const void> place)
      : owner_(owner), answer_(std::move(answer)), place_(std::move(place)) {}

  const std::string& principal() const { return peer_->principal(); }

  void run(std::string principal, McpRequest message) {
    peer_ = McpPeer::make(owner_.service_, std::move(principal),
                          [this](McpConnection::Send said) { send(std::move(said)); });
    peer_->require_stateless();
    hearing_ = std::make_unique<Cancel::Hearing>(answer_.gone, [this] { leave(); });
    peer_->receive(std::move(message));
  }

  // There is nobody to answer to any more.
  void end(int status, const std::string& why) {
    if (begun_) answer_.end();
    if (!begun_) refuse(answer_, status, why);
    leave();
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
  void send(McpConnection::Send message) {
    if (message.text.empty()) return;  // it was cancelled by who hung up
    if (message.last && !begun_) {
      answer_.whole(status_of(message.error), json_headers(), std::move(message.text));
    } else {
      if (!std::exchange(begun_, true)) answer_.begin({});
      answer_.event(event_text("", message.text));
      if (message.last) answer_.end();
    }
    if (message.last) leave();
  }

  McpHttp& owner_;
  McpHttpAnswer answer_;
  std::shared_ptr<const void> place_;
  std::shared_ptr<McpPeer> peer_;
  std::unique_ptr<Cancel::Hearing> hearing_;
  bool begun_ = false;
};

// ---- requests -----------------------------------------------------------------

McpHttp::~McpHttp() { close(); }

void McpHttp::close() {
  sessions_.clear();
  const auto all = once_;
  for (const auto& [raw, once] : all) once->end(503, "the server is stopping");
}

void McpHttp::close(const std::string& principal) {
  std::erase_if(sessions_,
                [&](const auto& entry) { return entry.second->principal() == principal; });
  const auto all = once_;
  for (const auto& [raw, once] : all)
    if (once->principal() == principal) once->end(401, "this token is not known any more");
}

void McpHttp::handle(McpHttpRequest request, McpHttpAnswer answer) {
  forget_idle();
  if (request.method == "POST") return post(request, std::move(answer));
  if (request.method == "GET") return get(request, std::move(answer));
  if (request.method != "DELETE") {
    answer.whole(405, {{"Allow", "GET, POST, DELETE"}}, "");
    return;
  }
  const std::shared_ptr<McpHttpSession> session = find(request, answer);
  if (session == nullptr) return;
  sessions_.erase(session->id());
  answer.whole(204, {}, "");
}

// Another's session is as one that is not there.
std::shared_ptr<McpHttpSession> McpHttp::find(const McpHttpRequest& request,
                                              const McpHttpAnswer& answer) {
  const std::string* id = header(request, "mcp-session-id");
  if (id == nullptr) {
    refuse(answer, 400, "the header Mcp-Session-Id is missing: initialize comes first");
    return nullptr;
  }
  const auto found = sessions_.find(*id);
  if (found == sessions_.end() || found->second->principal() != request.principal) {
    refuse(answer, 404, "there is no such session: initialize again");
    return nullptr;
  }
  return found->second;
}

void McpHttp::forget_idle() {
  std::erase_if(sessions_, [](const auto& entry) { return entry.second->idle(); });
}

void McpHttp::forget_old(const std::string& principal) {
  std::vector<std::shared_ptr<McpHttpStream>> all;
  for (const auto& [id, session] : sessions_)
    if (session->principal() == principal)
      std::ranges::move(session->old_streams(), std::back_inserter(all));
  std::ranges::sort(all, std::greater(), [](const auto& stream) { return stream->ended_at(); });
  std::size_t sum = 0;
  for (const auto& stream : all) {
    sum += stream->bytes();
    if (sum > kMaxOldBytes && stream != all.front()) stream->forget();
  }
}

bool McpHttp::make_room(const std::string& principal) {
  std::size_t mine = 0;
  auto longest = sessions_.end();
  for (auto at = sessions_.begin(); at != sessions_.end(); ++at) {
    const McpHttpSession& session = *at->second;
    if (session.principal() != principal) continue;
    ++mine;
    if (session.unused_for() < kUnused) continue;
    if (longest == sessions_.end() || session.unused_for() > longest->second->unused_for())
      longest = at;
  }
  const bool full = mine >= kMaxMcpSessionsOfOne || sessions_.size() >= kMaxMcpSessions;
  if (full && longest == sessions_.end()) return false;
  if (full) sessions_.erase(longest);
  return true;
}

void McpHttp::begin_session(McpHttpRequest& request, McpMessage message, McpHttpAnswer answer) {
  if (!make_room(request.principal)) {
    const McpError error{mcp_code::invalid_request, "there are too many sessions: DELETE one", {}};
    McpHttpHeaders headers = json_headers();
    headers.emplace_back("Retry-After", "60");
    answer.whole(429, std::move(headers), response_text(nullptr, std::unexpected(error)));
    return;
  }
  const auto session =
      std::make_shared<McpHttpSession>(service_, random_hex(16), request.principal, idle_,
                                       [this, who = request.principal] { forget_old(who); });
  sessions_[session->id()] = session;
  session->post(std::move(message), std::move(answer), std::move(request.place));
}

void McpHttp::post(McpHttpRequest& request, McpHttpAnswer answer) {
  auto message = request.message ? *std::move(request.message) : read_message(request.body);
  if (!message) return refuse(answer, 400, message.error().id, message.error().error);
  const std::string* version = header(request, "mcp-protocol-version");
  const bool says_stateless = version != nullptr && *version == kStatelessVersion;
  if (auto* asked = std::get_if<McpRequest>(&*message)) {
    if (says_stateless || is_stateless(*asked))
      return post_stateless(request, std::move(*asked), std::move(answer));
    if (asked->method == "initialize" && header(request, "mcp-session-id") == nullptr)
      return begin_session(request, *std::move(message), std::move(answer));
  }
  const bool known =
      version == nullptr || std::ranges::find(kMcpVersions, *version) != std::end(kMcpVersions);
  if (!known) return refuse(answer, 400, "this version of the protocol is not spoken");
  // A notification of the stateless era belongs to nothing that we keep.
  if (says_stateless) return answer.whole(202, {}, "");
  const std::shared_ptr<McpHttpSession> session = find(request, answer);
  if (session != nullptr)
    session->post(*std::move(message), std::move(answer), std::move(request.place));
}

void McpHttp::post_stateless(McpHttpRequest& request, McpRequest message, McpHttpAnswer answer) {
  if (const std::optional<McpError> wrong = disagreement(request, message))
    return refuse(answer, 400, message.id, *wrong);
  // Who only listens is counted by the service.
  if (message.method == "subscriptions/listen") request.place.reset();
  const auto once = std::make_shared<Once>(*this, std::move(answer), std::move(request.place));
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
  const std::shared_ptr<McpHttpSession> session = find(request, answer);
  if (session != nullptr) session->get(std::move(answer), header(request, "last-event-id"));
}

}  // namespace belljar::server
