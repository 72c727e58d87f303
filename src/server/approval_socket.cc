#include "server/approval_socket.h"

#include <sys/socket.h>

#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <boost/json.hpp>

#include "base/json_field.h"
#include "server/outside.h"

namespace belljar::server {
namespace {

namespace json = boost::json;
using Local = asio::local::stream_protocol;

constexpr std::size_t kMaxLine = std::size_t{64} << 10;
// Of one who watches and does not read, while a person thinks: as much as may be in one line of
// what `belljar approvals` reads.
constexpr std::size_t kMaxOutbox = std::size_t{64} << 20;
constexpr std::chrono::milliseconds kAcceptPause{100};  // when there are no descriptors left

json::object event_json(const ApprovalEvent& event) {
  json::object object = event.approval.to_json("");
  const bool required = event.kind == ApprovalEvent::Kind::required;
  object["event"] = required ? "required" : "decided";
  if (!required) {
    object["decision"] = event.decision.approved ? "approve" : "deny";
    object["by"] = event.decision.by;
  }
  return object;
}

}  // namespace

Result<Decision> parse_decision(const json::object& object, std::string by) {
  Decision decision;
  decision.by = std::move(by);
  decision.message = text_of(object, "message");
  decision.pattern = text_of(object, "pattern");
  const std::string said = text_of(object, "decision");
  if (said != "approve" && said != "deny") return fail("decision must be approve or deny");
  decision.approved = said == "approve";
  const std::optional<Scope> scope = parse_scope(text_of(object, "scope"));
  if (!scope) return fail("scope must be once, tool, pattern or same");
  decision.scope = *scope;
  const json::value* remember = object.if_contains("remember_for_session");
  if (remember != nullptr && remember->is_bool() && remember->get_bool() &&
      decision.scope == Scope::once)
    decision.scope = Scope::tool;
  if (decision.scope == Scope::pattern && decision.pattern.empty())
    return fail("a pattern is needed");
  return decision;
}

class ApprovalSocket::Client : public std::enable_shared_from_this<Client> {
 public:
  Client(Loop& loop, Local::socket socket, Approvals& approvals, OwnerKey key,
         std::shared_ptr<Cancel> end)
      : socket_(std::move(socket)),
        approvals_(approvals),
        key_(std::move(key)),
        news_(loop),
        end_(std::move(end)) {}

  static Async<void> run(std::shared_ptr<Client> self, Loop& loop) {
    begin(loop, write(self));
    {
      const Cancel::Hearing hearing(self->end_, [self] { self->hang_up(); });
      auto buffer = asio::dynamic_buffer(self->in_, kMaxLine);
      for (;;) {
        auto [error, size] = co_await asio::async_read_until(self->socket_, buffer, '\n', kAwait);
        if (error || self->end_->asked()) break;
        const std::string line = self->in_.substr(0, size);
        self->in_.erase(0, size);
        if (!self->proven_ && !self->prove(line)) break;
        if (std::exchange(self->proven_, true)) self->take(line);
      }
    }
    // Once `end` is asked the approvals may be gone.
    if (self->watching_ && !self->end_->asked()) self->approvals_.unsubscribe(*self->watching_);
    self->hang_up();
  }

 private:
  // The first line, and nothing is said to who cannot.
  bool prove(const std::string& line) const {
    boost::system::error_code error;
    const json::value value = json::parse(line, error);
    return !error && value.is_object() && key_.is(text_of(value.get_object(), "key"));
  }

  void take(const std::string& line) {
    boost::system::error_code error;
    const json::value value = json::parse(line, error);
    const json::object* request = error ? nullptr : value.if_object();
    if (request == nullptr) return put({{"error", "this is no JSON object"}});
    const std::string op = text_of(*request, "op");
    if (op == "list") return list();
    if (op == "watch") return watch();
    if (op != "decide") return put({{"error", "there is no such op"}});
    Result<Decision> decision = parse_decision(*request, "terminal");
    const Status done =
        decision ? approvals_.decide(text_of(*request, "approval_id"), *std::move(decision))
                 : Status(std::unexpected(decision.error()));
    if (!done) return put({{"error", done.error().message()}});
    put({{"ok", true}});
  }

  void list() {
    json::array pending;
    for (const Approval& approval : approvals_.pending()) pending.push_back(approval.to_json(""));
    json::object answer;
    answer["pending"] = std::move(pending);
    put(answer);
  }

  void watch() {
    if (watching_) return;
    watching_ = approvals_.subscribe([weak = weak_from_this()](const ApprovalEvent& event) {
      if (const auto self = weak.lock()) self->put(event_json(event));
    });
    for (const Approval& approval : approvals_.pending())
      put(event_json(
          {.kind = ApprovalEvent::Kind::required, .approval = approval, .decision = {}}));
  }

  void put(const json::object& object) {
    if (out_.size() > kMaxOutbox) return hang_up();
    out_ += json::serialize(object) + "\n";
    news_.raise();
  }

  static Async<void> write(std::shared_ptr<Client> self) {
    while (!self->closed_) {
      if (self->out_.empty()) {
        co_await self->news_.wait();
        continue;
      }
      const std::string bytes = std::exchange(self->out_, {});
      auto [error, size] = co_await asio::async_write(self->socket_, asio::buffer(bytes), kAwait);
      if (error) self->hang_up();
    }
  }

  void hang_up() {
    closed_ = true;
    boost::system::error_code ignored;
    (void)socket_.close(ignored);
    news_.raise();
  }

  Local::socket socket_;
  Approvals& approvals_;
  OwnerKey key_;
  Signal news_;
  std::shared_ptr<Cancel> end_;
  std::string in_, out_;
  std::optional<std::size_t> watching_;
  bool proven_ = false;
  bool closed_ = false;
};

Result<std::unique_ptr<ApprovalSocket>> ApprovalSocket::listen(Loop& loop, Approvals& approvals,
                                                               const OwnerKey& key,
                                                               const std::string& key_folder,
                                                               const std::string& path) {
  Fd listener = TRY(open_listener({.path = path, .endpoint = {}}));
  SocketFile file(path);
  KeyFile key_file = TRY(key.put(key_folder, path));
  auto listening = std::make_shared<Stream>(loop, listener.release());
  std::unique_ptr<ApprovalSocket> made(
      new ApprovalSocket(std::move(file), std::move(key_file), std::move(listening)));
  begin(loop, accept(made->listening_, loop, approvals, key, made->end_));
  return made;
}

ApprovalSocket::~ApprovalSocket() {
  boost::system::error_code ignored;
  (void)listening_->close(ignored);
  end_->ask();
}

// accept4 and not the library's accept, whose sockets a guest would inherit.
Async<void> ApprovalSocket::accept(std::shared_ptr<Stream> listener, Loop& loop,
                                   Approvals& approvals, OwnerKey key,
                                   std::shared_ptr<Cancel> end) {
  asio::steady_timer pause(loop);
  while (!end->asked()) {
    const bool ready = co_await readable(*listener);
    if (!ready || end->asked()) co_return;
    Fd fd(::accept4(listener->native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) {  // perhaps no descriptor is left; one may be later
      pause.expires_after(kAcceptPause);
      co_await pause.async_wait(kAwait);
      continue;
    }
    if (!is_outside(fd.get())) continue;
    Local::socket socket(loop);
    boost::system::error_code error;
    (void)socket.assign(Local(), fd.get(), error);
    if (error) continue;
    (void)fd.release();  // the socket owns it now
    const auto client = std::make_shared<Client>(loop, std::move(socket), approvals, key, end);
    begin(loop, Client::run(client, loop));
  }
}

}  // namespace belljar::server
