#include "server/mcp_service.h"

namespace belljar::server {

McpExchange::McpExchange(std::shared_ptr<McpPeer> peer, McpConnection::Begin begin,
                         std::shared_ptr<Cancel> cancel)
    : peer_(std::move(peer)), begin_(std::move(begin)), cancel_(std::move(cancel)) {}

json::value McpExchange::take_arguments() {
  json::value* arguments = begin_.request.params.if_contains("arguments");
  return arguments != nullptr ? std::exchange(*arguments, nullptr) : json::value();
}

void McpExchange::progress(double done, std::optional<double> total, const std::string& message) {
  peer_->send(peer_->connection_.progress(begin_.key, done, total, message));
}

void McpExchange::log(LogLevel level, json::value data) {
  peer_->send(peer_->connection_.log(begin_.key, level, std::move(data)));
}

void McpExchange::notify(std::string_view method, json::object params) {
  if (cancel_->asked()) return;
  peer_->send(
      McpConnection::Send{.text = notice_text(method, std::move(params)), .about = begin_.key});
}

Async<McpResult> McpExchange::ask(std::string method, json::object params) {
  if (cancel_->asked()) co_return mcp_fail(mcp_code::internal, "cancelled");
  auto [id, message] = peer_->connection_.ask(begin_.key, method, std::move(params));
  const auto question = std::make_shared<McpPeer::Question>(peer_->service_->loop());
  peer_->questions_[id] = question;
  peer_->send(std::move(message));
  {
    const Cancel::Hearing hearing(cancel_, [question] { question->news.raise(); });
    while (!question->answer && !cancel_->asked()) co_await question->news.wait();
  }
  peer_->questions_.erase(id);
  if (!question->answer) co_return mcp_fail(mcp_code::internal, "cancelled");
  co_return std::move(*question->answer);
}

// ---- the client ---------------------------------------------------------------

McpPeer::McpPeer(McpService& service, std::string principal, Out out)
    : service_(&service),
      principal_(std::move(principal)),
      out_(std::move(out)),
      connection_(service.facts()) {
  service_->peers_.insert(this);
}

std::shared_ptr<McpPeer> McpPeer::make(McpService& service, std::string principal, Out out) {
  return std::shared_ptr<McpPeer>(new McpPeer(service, std::move(principal), std::move(out)));
}

McpPeer::~McpPeer() {
  if (service_ != nullptr) service_->peers_.erase(this);
}

void McpPeer::receive(std::string_view text) { take(connection_.receive(text)); }
void McpPeer::receive(McpMessage message) { take(connection_.receive(std::move(message))); }

void McpPeer::close() {
  if (service_ != nullptr && out_ != nullptr)
    for (const auto& provider : service_->providers_) provider->forget(*this);
  out_ = nullptr;
  const auto running = running_;  // which shrinks meanwhile
  for (const auto& [key, cancel] : running) cancel->ask();
}

void McpPeer::cancel(const std::string& key) {
  const auto found = running_.find(key);
  if (found == running_.end()) return;
  const std::shared_ptr<Cancel> cancel = found->second;
  cancel->ask();
}

void McpPeer::send(std::optional<McpConnection::Send> message) {
  const Out out = out_;  // it may be the last, after which we are closed
  if (message && out) out(*std::move(message));
}

void McpPeer::take(std::vector<McpConnection::Step> steps) {
  for (McpConnection::Step& step : steps) {
    if (auto* message = std::get_if<McpConnection::Send>(&step)) send(std::move(*message));
    if (const auto* stop = std::get_if<McpConnection::Stop>(&step)) {
      cancel(stop->key);
      send(McpConnection::Send{.text = {}, .about = stop->key, .last = true, .error = 0});
    }
    if (auto* heard = std::get_if<McpConnection::Heard>(&step)) {
      const auto question = questions_.find(heard->question);
      if (question == questions_.end()) continue;
      question->second->answer = std::move(heard->result);
      question->second->news.raise();
    }
    if (auto* asked = std::get_if<McpConnection::Begin>(&step)) {
      auto cancel = std::make_shared<Cancel>();
      running_[asked->key] = cancel;
      begin(service_->loop(), work(shared_from_this(), std::move(*asked), std::move(cancel)));
    }
  }
}

Async<void> McpPeer::work(std::shared_ptr<McpPeer> self, McpConnection::Begin asked,
                          std::shared_ptr<Cancel> cancel) {
  const std::string key = asked.key;
  McpExchange exchange(self, std::move(asked), cancel);
  McpResult result = co_await self->service_->handle(exchange);
  const int code = result ? 0 : result.error().code;
  std::string text;
  if (!cancel->asked()) {
    json::value id = self->connection_.id_of(key);
    text = co_await self->service_->text_of(self->principal_, std::move(id), std::move(result));
  }
  const auto mine = self->running_.find(key);
  // Cancelled, its id may be in use again.
  if (mine != self->running_.end() && mine->second == cancel) self->running_.erase(mine);
  if (!cancel->asked()) self->send(self->connection_.finish_with(key, std::move(text), code));
  cancel->ask();  // whoever still waits for the client on its behalf
}

}  // namespace belljar::server
