#include "server/approval_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <boost/json.hpp>

#include "base/json_field.h"
#include "server/outside.h"

namespace belljar::server {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxLine = std::size_t{64} << 10;
constexpr std::size_t kMaxOutbox = std::size_t{16} << 20;  // of one who watches and does not read

json::object event_json(const ApprovalEvent& event) {
  json::object object = event.approval.to_json();
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
  Client(Loop& loop, Local::socket socket, Approvals& approvals, std::shared_ptr<Cancel> end)
      : socket_(std::move(socket)), approvals_(approvals), news_(loop), end_(std::move(end)) {}

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
        self->take(line);
      }
    }
    // Once `end` is asked the approvals may be gone.
    if (self->watching_ && !self->end_->asked()) self->approvals_.unsubscribe(*self->watching_);
    self->hang_up();
  }

 private:
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
    for (const Approval& approval : approvals_.pending()) pending.push_back(approval.to_json());
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
  Signal news_;
  std::shared_ptr<Cancel> end_;
  std::string in_, out_;
  std::optional<std::size_t> watching_;
  bool closed_ = false;
};

Result<std::unique_ptr<ApprovalSocket>> ApprovalSocket::listen(Loop& loop, Approvals& approvals,
                                                               std::string path) {
  sockaddr_un address{};
  if (path.size() >= sizeof address.sun_path) return fail("the path " + path + " is too long");
  std::unique_ptr<ApprovalSocket> made(new ApprovalSocket(std::move(path)));
  (void)::unlink(made->path_.c_str());  // of a process that had our number and was killed
  boost::system::error_code error;
  made->listening_ = std::make_shared<Local::acceptor>(loop);
  Local::acceptor& acceptor = *made->listening_;
  (void)acceptor.open(Local(), error);
  const mode_t before = ::umask(0177);
  if (!error) (void)acceptor.bind(Local::endpoint(made->path_), error);
  ::umask(before);
  if (!error) (void)acceptor.listen(16, error);
  if (error) return fail("listen on " + made->path_, error.value());
  begin(loop, accept(made->listening_, loop, approvals, made->end_));
  return made;
}

ApprovalSocket::~ApprovalSocket() {
  (void)::unlink(path_.c_str());
  boost::system::error_code ignored;
  if (listening_ != nullptr) (void)listening_->close(ignored);
  end_->ask();
}

Async<void> ApprovalSocket::accept(std::shared_ptr<Local::acceptor> acceptor, Loop& loop,
                                   Approvals& approvals, std::shared_ptr<Cancel> end) {
  while (!end->asked()) {
    auto [error, socket] = co_await acceptor->async_accept(kAwait);
    if (end->asked() || error == asio::error::operation_aborted) co_return;
    if (error) {
      // No descriptor is left; one may be later.
      asio::steady_timer pause(loop, std::chrono::milliseconds(100));
      co_await pause.async_wait(kAwait);
      continue;
    }
    if (!is_outside(socket.native_handle())) continue;
    const auto client = std::make_shared<Client>(loop, std::move(socket), approvals, end);
    begin(loop, Client::run(client, loop));
  }
}

}  // namespace belljar::server
