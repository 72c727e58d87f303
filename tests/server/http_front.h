// The smallest HTTP/1.1 that carries requests to an MCP endpoint and answers back, for tests
// of the endpoint alone. No limits, no tokens; Host and Origin must be this machine's.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>

#include "server/mcp_http.h"

namespace belljar::server {

using Tcp = asio::ip::tcp;

class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  HttpConnection(Loop& loop, Tcp::socket socket, McpHttp& endpoint)
      : socket_(std::move(socket)), endpoint_(endpoint), news_(loop) {}

  static Async<void> run(std::shared_ptr<HttpConnection> self) {
    for (bool more = true; more;) {
      McpHttpRequest request;
      more = co_await self->read(request);
      if (!more) break;
      more = co_await self->answer(std::move(request));
    }
    self->gone_->ask();
    boost::system::error_code ignored;
    self->socket_.close(ignored);
  }

 private:
  static std::string lower(std::string text) {
    for (char& c : text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
    return text;
  }

  Async<bool> read(McpHttpRequest& request) {
    auto buffer = asio::dynamic_buffer(in_);
    auto [error, size] = co_await asio::async_read_until(socket_, buffer, "\r\n\r\n", kAwait);
    if (error) co_return false;
    const std::string head = in_.substr(0, size);
    in_.erase(0, size);
    std::size_t end = head.find("\r\n");
    request.method = head.substr(0, head.find(' '));
    while (end + 2 < head.size()) {
      const std::size_t begin = end + 2;
      end = head.find("\r\n", begin);
      const std::string line = head.substr(begin, end - begin);
      const std::size_t colon = line.find(": ");
      if (colon != line.npos)
        request.headers[lower(line.substr(0, colon))] = line.substr(colon + 2);
    }
    std::size_t length = 0;
    if (const auto found = request.headers.find("content-length"); found != request.headers.end())
      length = std::stoul(found->second);
    if (in_.size() < length) {
      const std::size_t missing = length - in_.size();
      auto body = asio::dynamic_buffer(in_);
      const auto enough = asio::transfer_exactly(missing);
      auto [failed, more] = co_await asio::async_read(socket_, body, enough, kAwait);
      if (failed) co_return false;
    }
    request.body = in_.substr(0, length);
    in_.erase(0, length);
    co_return true;
  }

  static bool is_local(std::string name) {
    if (name.starts_with("http://")) name.erase(0, 7);
    name = name.substr(0, name.starts_with('[') ? name.find(']') + 1 : name.find(':'));
    return name == "localhost" || name == "127.0.0.1" || name == "[::1]";
  }

  Async<bool> answer(McpHttpRequest request) {
    done_ = false;
    gone_ = std::make_shared<Cancel>();
    bool local = is_local(request.headers["host"]);
    if (const auto origin = request.headers.find("origin"); origin != request.headers.end())
      local = local && is_local(origin->second);
    begin_watching();
    hand_over(std::move(request), local);
    while (!done_ || !out_.empty()) {
      if (gone_->asked()) co_return false;
      if (out_.empty()) {
        co_await news_.wait();
        continue;
      }
      const std::string bytes = std::exchange(out_, {});
      auto [error, size] = co_await asio::async_write(socket_, asio::buffer(bytes), kAwait);
      if (error) co_return false;
    }
    co_return true;
  }

  void hand_over(McpHttpRequest request, bool local) {
    McpHttpAnswer to;
    to.gone = gone_;
    to.whole = [self = shared_from_this()](int status, McpHttpHeaders headers, std::string body) {
      headers.emplace_back("Content-Length", std::to_string(body.size()));
      self->put(head(status, headers) + body);
      self->finish();
    };
    to.begin = [self = shared_from_this()](McpHttpHeaders headers) {
      headers.emplace_back("Content-Type", "text/event-stream");
      headers.emplace_back("Transfer-Encoding", "chunked");
      self->put(head(200, headers));
    };
    to.event = [self = shared_from_this()](const std::string& text) { self->put_chunk(text); };
    to.end = [self = shared_from_this()] {
      self->put("0\r\n\r\n");
      self->finish();
    };
    if (local)
      endpoint_.handle(std::move(request), std::move(to));
    else
      to.whole(403, {}, "");
  }

  // Until the answer is complete, the end of the connection is heard at once.
  void begin_watching() {
    socket_.async_wait(Tcp::socket::wait_read, [self = shared_from_this()](auto error) {
      if (error || self->done_) return;
      char byte = 0;
      boost::system::error_code ended;
      const auto peek = Tcp::socket::message_peek;
      if (self->socket_.receive(asio::buffer(&byte, 1), peek, ended) > 0) return;
      self->gone_->ask();
      self->news_.raise();
    });
  }

  static std::string head(int status, const McpHttpHeaders& headers) {
    std::string text = "HTTP/1.1 " + std::to_string(status) + " Answer\r\n";
    for (const auto& [name, value] : headers) text += name + ": " + value + "\r\n";
    return text + "\r\n";
  }
  void put(const std::string& bytes) {
    out_ += bytes;
    news_.raise();
  }
  void put_chunk(const std::string& text) {
    char size[32];
    std::snprintf(size, sizeof size, "%zx\r\n", text.size());
    put(size + text + "\r\n");
  }
  void finish() {
    done_ = true;
    news_.raise();
  }

  Tcp::socket socket_;
  McpHttp& endpoint_;
  std::string in_, out_;
  bool done_ = false;
  std::shared_ptr<Cancel> gone_ = std::make_shared<Cancel>();
  Signal news_;
};

// Prints its port.
inline Async<void> serve_http(Loop& loop, McpHttp& endpoint) {
  const Tcp::endpoint anywhere(asio::ip::address_v4::loopback(), 0);
  Tcp::acceptor acceptor(loop, anywhere);
  std::printf("%d\n", acceptor.local_endpoint().port());
  std::fflush(stdout);
  for (;;) {
    auto [error, socket] = co_await acceptor.async_accept(kAwait);
    if (error) co_return;
    const auto connection = std::make_shared<HttpConnection>(loop, std::move(socket), endpoint);
    begin(loop, HttpConnection::run(connection));
  }
}

}  // namespace belljar::server
