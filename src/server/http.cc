// The only file that knows the HTTP library: each that does takes 20 s to compile.
#include "server/http.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <list>

#include "server/event_stream.h"
#include "server/http_text.h"
#include "server/outside.h"

namespace belljar::server {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;
using Socket = asio::generic::stream_protocol::socket;
using Parser = http::request_parser<http::string_body>;
using boost::system::error_code;

constexpr std::size_t kPiece = 64 << 10;                   // of an answer, for one write
constexpr std::size_t kHeadPiece = 2 << 10;                // of a head, for one read
constexpr std::size_t kMaxLinger = std::size_t{64} << 20;  // read and thrown away after a refusal
constexpr std::chrono::seconds kLinger{2};
constexpr std::chrono::milliseconds kAcceptPause{50};  // when there are no descriptors left

Request head_of(const Parser& parser, const Peer& peer) {
  const auto& message = parser.get();
  Request request;
  request.method = std::string(message.method_string());
  for (const auto& field : message)
    request.headers.emplace_back(lower({field.name_string().data(), field.name_string().size()}),
                                 std::string(field.value()));
  const std::string_view target =
      take_host({message.target().data(), message.target().size()}, request);
  const std::size_t question = target.find('?');
  request.path = target.substr(0, question);
  if (request.path.empty()) request.path = "/";
  if (question != std::string_view::npos) request.query = target.substr(question + 1);
  request.peer = peer;
  return request;
}

Response refuse_unread(error_code error, bool timed_out) {
  if (timed_out) return refuse(kTimeout, "the request did not arrive in time");
  if (error == http::error::header_limit || error == http::error::buffer_overflow)
    return refuse(kHeadersTooLarge, "the head of the request is too large");
  if (error == http::error::body_limit)
    return refuse(kTooLarge, "the body of the request is too large");
  if (error == beast::error::timeout) return refuse(kTimeout, "the request did not arrive in time");
  return refuse(kBadRequest, "this is no HTTP request: " + error.message(),
                "speak HTTP/1.1 without TLS");
}

// Whether a head ends in it, of which `seen` bytes did not, or it is none at all: TLS, or lines
// without CR.
bool may_be_head(std::string_view text, std::size_t seen) {
  if (text.empty() || text.front() < 'A' || text.front() > 'Z') return !text.empty();
  text.remove_prefix(seen > 3 ? seen - 3 : 0);
  return text.find("\r\n\r\n") != text.npos || text.find("\n\n") != text.npos;
}

// What else it could mean for the body's end is another's guess than ours.
bool has_unknown_coding(const Request& request, bool is_http_1_0) {
  std::size_t count = 0;
  for (const auto& [name, value] : request.headers) {
    if (name != "transfer-encoding") continue;
    if (++count > 1 || lower(value) != "chunked" || is_http_1_0) return true;
  }
  return false;
}

}  // namespace

struct HttpServer::State {
  State(Loop& its_loop, HttpLimits its_limits, HttpHandler its_handler)
      : loop(its_loop), limits(its_limits), handler(std::move(its_handler)), changed(its_loop) {}

  struct Connection;

  Loop& loop;
  HttpLimits limits;
  HttpHandler handler;
  std::vector<std::shared_ptr<Stream>> listeners;
  // Those without the head of a request, the one that has been so for longest in front.
  std::list<Connection*> idle;
  std::size_t open = 0;
  std::uint64_t refused = 0;
  bool draining = false;
  bool gone = false;  // its server is: there is nobody to ask
  Signal changed;

  static Async<void> accept_from(std::shared_ptr<State> self, std::shared_ptr<Stream> listener);
  void take_in(const std::shared_ptr<State>& self, Fd fd);
  bool make_room();
};

// What is read of a body before it is looked at. Extensions of chunks and trailers, of which
// a client can send without end, must fit into it too.
constexpr std::size_t kReadAhead = 64 << 10;

// One connection, from when it is accepted.
struct HttpServer::State::Connection : std::enable_shared_from_this<Connection> {
  Connection(std::shared_ptr<State> its_server, int family, Fd fd)
      : server(std::move(its_server)),
        socket(server->loop),
        timer(server->loop),
        buffer(server->limits.header_bytes + kReadAhead) {
    error_code error;
    (void)socket.assign(asio::generic::stream_protocol(family, 0), fd.get(), error);
    if (!error) (void)fd.release();  // the socket owns it now
    ++server->open;
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    leave_idle();
    --server->open;
    server->changed.raise();
  }

  std::shared_ptr<State> server;
  Socket socket;
  asio::steady_timer timer;
  std::uint64_t deadline = 0;  // a number for each, so that a late alarm hits nothing else
  bool timed_out = false;
  Peer peer;
  beast::flat_buffer buffer;
  bool begun = false;  // its next request has
  bool keeps_alive = true;
  bool is_http_1_0 = false;
  bool is_head = false;  // the present request: its answer has no body
  std::shared_ptr<Cancel> gone = std::make_shared<Cancel>();  // the present request's
  std::optional<std::list<Connection*>::iterator> place;      // among the idle

  void enter_idle() {
    leave_idle();
    place = server->idle.insert(server->idle.end(), this);
  }
  void leave_idle() {
    if (place) server->idle.erase(*std::exchange(place, std::nullopt));
  }
  void close() {
    error_code ignored;  // it is being thrown away
    (void)socket.close(ignored);
  }

  // What waits on the socket then is given up; the socket itself stays, for an answer.
  void expires_after(std::chrono::milliseconds time) {
    timed_out = false;
    timer.expires_after(time);
    timer.async_wait([weak = weak_from_this(), mine = ++deadline](error_code error) {
      const std::shared_ptr<Connection> self = weak.lock();
      if (error || self == nullptr || self->deadline != mine) return;
      self->timed_out = true;
      error_code ignored;  // then there is nothing to give up
      (void)self->socket.cancel(ignored);
    });
  }
  void expires_never() {
    ++deadline;
    timer.cancel();
  }

  // Who hangs up before the answer is complete is noticed at once, and not by a write. What
  // comes before the end is of the next request, and taken in as far as there is room.
  void watch() {
    gone = std::make_shared<Cancel>();
    look_for_end(gone);
  }
  void look_for_end(std::shared_ptr<Cancel> asks) {
    auto look = [weak = weak_from_this(), asks = std::move(asks)](error_code error) {
      const std::shared_ptr<Connection> self = weak.lock();
      // Its request may have been answered, and then what is there is for another to read.
      if (error || self == nullptr || self->gone != asks || self->buffer.size() >= kReadAhead)
        return;
      const auto room = self->buffer.prepare(2048);
      const int fd = self->socket.native_handle();
      const ssize_t size = ::recv(fd, room.data(), room.size(), MSG_DONTWAIT);
      if (size > 0) self->buffer.commit(static_cast<std::size_t>(size));
      // Without anything: what it was told was meant for another descriptor, see base/loop.cc.
      if (size > 0 || (size < 0 && errno == EAGAIN)) return self->look_for_end(asks);
      asks->ask();
    };
    socket.async_wait(asio::socket_base::wait_read, std::move(look));
  }

  static Async<void> serve(std::shared_ptr<Connection> self);
  Async<bool> first_bytes();
  Async<error_code> whole_head();
  Async<error_code> read_head(Parser& parser);
  Async<std::optional<Response>> read_body(Parser& parser, const Request& request);
  Async<bool> one_request();
  Async<bool> send_bytes(std::string bytes);
  Async<bool> send_joined(std::string head, std::string body, std::string tail);
  Async<bool> send(Response response);
  Async<bool> send_file(FileBody file);
  Async<bool> send_events(std::shared_ptr<EventStream> events);
  Async<void> refuse_and_close(Response response);
};

// ---- one request --------------------------------------------------------------

// Waits for a request to begin. False: none comes.
Async<bool> HttpServer::State::Connection::first_bytes() {
  begun = false;
  enter_idle();
  if (buffer.size() > 0) co_return true;
  buffer.shrink_to_fit();  // it may have held a body
  expires_after(server->limits.idle);
  const auto room = buffer.prepare(kHeadPiece);
  auto [error, size] = co_await socket.async_read_some(room, kAwait);
  if (error) co_return false;
  buffer.commit(size);
  co_return true;
}

// Waits until the head is there, or the parser can say what is wrong with it. Until then nothing is
// made of it, and the connection makes room for others: a stranger can begin thousands.
Async<error_code> HttpServer::State::Connection::whole_head() {
  begun = true;
  expires_after(server->limits.header);
  std::size_t seen = 0;
  while (buffer.size() <= server->limits.header_bytes) {
    const auto data = buffer.cdata();
    const std::string_view text(static_cast<const char*>(data.data()), data.size());
    if (may_be_head(text, seen)) break;
    seen = text.size();
    const auto room = buffer.prepare(kHeadPiece);
    auto [error, size] = co_await socket.async_read_some(room, kAwait);
    if (error == asio::error::eof) break;
    if (error) co_return error;
    buffer.commit(size);
  }
  co_return error_code();
}

// As http::async_read_header does, which does not tell whether a line was folded.
Async<error_code> HttpServer::State::Connection::read_head(Parser& parser) {
  while (true) {
    error_code error;
    const auto seen = buffer.cdata();
    const std::size_t used = seen.size() > 0 ? parser.put(seen, error) : 0;
    const std::string_view head(static_cast<const char*>(seen.data()), used);
    if ((!error || error == http::error::need_more) && has_folded_line(head))
      error = http::error::bad_obs_fold;
    buffer.consume(used);
    if (parser.is_header_done() || (error && error != http::error::need_more)) co_return error;
    if (buffer.size() >= buffer.max_size()) co_return http::error::buffer_overflow;
    const auto room =
        buffer.prepare(std::min<std::size_t>(2048, buffer.max_size() - buffer.size()));
    auto [read_error, size] = co_await socket.async_read_some(room, kAwait);
    if (read_error == asio::error::eof)
      co_return parser.got_some() ? http::error::partial_message : http::error::end_of_stream;
    if (read_error) co_return read_error;
    buffer.commit(size);
  }
}

// Why it is refused, if so. Part by part, since many that never end would be a lot together.
Async<std::optional<Response>> HttpServer::State::Connection::read_body(Parser& parser,
                                                                        const Request& request) {
  parser.eager(true);  // as much as is there
  while (!parser.is_done()) {
    auto [error, size] = co_await http::async_read_some(socket, buffer, parser, kAwait);
    if (error) co_return refuse_unread(error, timed_out);
    if (server->gone) co_return refuse(kUnavailable, "the server has stopped", kStartsAgain);
    std::optional<Response> full = server->handler.hold(request, parser.get().body().size());
    if (full) co_return full;
  }
  co_return std::nullopt;
}

// True: another may follow.
Async<bool> HttpServer::State::Connection::one_request() {
  Parser parser;
  parser.header_limit(static_cast<std::uint32_t>(server->limits.header_bytes));
  parser.body_limit(boost::none);  // until it is known what is asked for
  is_head = false;                 // until it is known
  error_code head_error = co_await whole_head();
  if (!head_error) {
    const error_code error = co_await read_head(parser);
    head_error = error;
  }
  if (!socket.is_open()) co_return false;  // it has made room
  leave_idle();
  if (head_error == http::error::end_of_stream) co_return false;
  if (head_error) {
    co_await refuse_and_close(refuse_unread(head_error, timed_out));
    co_return false;
  }
  if (server->gone) co_return false;
  keeps_alive = parser.keep_alive();
  is_http_1_0 = parser.get().version() < 11;
  Request request = head_of(parser, peer);
  is_head = request.method == "HEAD";

  if (has_unknown_coding(request, is_http_1_0)) {
    co_await refuse_and_close(refuse(kBadRequest, "this Transfer-Encoding is not understood",
                                     "send the length of the body, or HTTP/1.1 and chunked"));
    co_return false;
  }
  Admission admitted = server->handler.admit(request);
  if (!admitted) {
    co_await refuse_and_close(std::move(admitted.error()));
    co_return false;
  }
  const std::uint64_t length = parser.content_length().value_or(0);
  if (length > *admitted) {
    co_await refuse_and_close(refuse_unread(http::error::body_limit, false));
    co_return false;
  }
  parser.body_limit(*admitted);
  if (!parser.is_done()) {
    const std::string* expects = request.header("expect");
    if (expects != nullptr && lower(*expects) == "100-continue") {
      const bool told = co_await send_bytes("HTTP/1.1 100 Continue\r\n\r\n");
      if (!told) co_return false;
    }
    expires_after(time_for(server->limits.body, parser.chunked() ? *admitted : length));
    std::optional<Response> refusal = co_await read_body(parser, request);
    if (refusal) {
      co_await refuse_and_close(std::move(*refusal));
      co_return false;
    }
  }
  request.body = std::move(parser.get().body());
  expires_never();
  if (server->gone) co_return false;
  watch();
  request.gone = gone;
  Response response = co_await server->handler.answer(std::move(request));
  const bool sent = co_await send(std::move(response));
  gone.reset();  // nobody looks for its end any more
  co_return sent;
}

Async<void> HttpServer::State::Connection::serve(std::shared_ptr<Connection> self) {
  bool goes_on = true;
  while (goes_on) {
    goes_on = co_await self->first_bytes();
    if (!goes_on) break;
    goes_on = co_await self->one_request();
    if (!self->keeps_alive || self->server->draining) goes_on = false;
  }
  error_code ignored;  // the other side may have gone
  (void)self->socket.shutdown(asio::socket_base::shutdown_both, ignored);
}

// ---- answers ------------------------------------------------------------------

// Each piece has its time, so that who reads nothing is given up soon however much there is.
Async<bool> HttpServer::State::Connection::send_bytes(std::string bytes) {
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const std::string_view piece = rest.substr(0, kPiece);
    expires_after(time_for(server->limits.write, piece.size()));
    const auto buffers = asio::buffer(piece);
    auto [error, size] = co_await asio::async_write(socket, buffers, kAwait);
    if (error) co_return false;
    rest.remove_prefix(piece.size());
  }
  expires_never();
  co_return true;
}

// In one write if it is short. What is long is not copied.
Async<bool> HttpServer::State::Connection::send_joined(std::string head, std::string body,
                                                       std::string tail) {
  if (body.size() <= kPiece) {
    head += body + tail;
    co_return co_await send_bytes(std::move(head));
  }
  for (std::string* part : {&head, &body, &tail}) {
    const bool sent = co_await send_bytes(std::move(*part));
    if (!sent) co_return false;
  }
  co_return true;
}

Async<bool> HttpServer::State::Connection::send(Response response) {
  if (server->draining) keeps_alive = false;
  if (auto* events = std::get_if<std::shared_ptr<EventStream>>(&response.body)) {
    const std::shared_ptr<EventStream> stream = *events;
    if (is_http_1_0) keeps_alive = false;  // it ends with the connection
    const std::string_view framing = is_http_1_0 ? "" : "Transfer-Encoding: chunked\r\n";
    std::string head = head_text(response, framing, keeps_alive);
    bool sent = co_await send_bytes(std::move(head));
    if (sent && !is_head) {
      const Cancel::Hearing hearing(gone, [stream] { stream->abandon(); });
      if (gone->asked()) stream->abandon();
      const bool told = co_await send_events(stream);
      sent = told;
    }
    stream->abandon();
    co_return sent;
  }
  auto* file = std::get_if<FileBody>(&response.body);
  const std::uint64_t length =
      file != nullptr ? file->length : std::get<std::string>(response.body).size();
  const bool has_length = response.status != 204;
  const std::string framing =
      has_length ? "Content-Length: " + std::to_string(length) + "\r\n" : std::string();
  std::string text = head_text(response, framing, keeps_alive);
  std::string body;
  if (file == nullptr && !is_head) body = std::move(std::get<std::string>(response.body));
  bool sent = co_await send_joined(std::move(text), std::move(body), {});
  if (sent && file != nullptr && !is_head) {
    const bool whole = co_await send_file(std::move(*file));
    sent = whole;
  }
  co_return sent;
}

Async<bool> HttpServer::State::Connection::send_file(FileBody file) {
  while (file.length > 0) {
    std::string piece(std::min<std::uint64_t>(file.length, kPiece), '\0');
    const ssize_t size =
        ::pread(file.file.get(), piece.data(), piece.size(), static_cast<off_t>(file.offset));
    if (size <= 0) co_return false;  // it has become shorter: the answer cannot be completed
    piece.resize(static_cast<std::size_t>(size));
    file.offset += piece.size();
    file.length -= piece.size();
    const bool sent = co_await send_bytes(std::move(piece));
    if (!sent) co_return false;
  }
  co_return true;
}

Async<bool> HttpServer::State::Connection::send_events(std::shared_ptr<EventStream> events) {
  while (true) {
    std::optional<std::string> bytes = co_await events->next();
    if (!bytes) break;
    const std::string head = is_http_1_0 ? std::string() : chunk_head(bytes->size());
    const std::string tail = is_http_1_0 ? std::string() : "\r\n";
    const bool sent = co_await send_joined(head, std::move(*bytes), tail);
    if (!sent) co_return false;
  }
  if (is_http_1_0) co_return true;
  co_return co_await send_bytes("0\r\n\r\n");
}

// What is still being sent is read for a while: closing at once would take the answer away
// from a client that has not read it yet.
Async<void> HttpServer::State::Connection::refuse_and_close(Response response) {
  keeps_alive = false;
  const bool sent = co_await send(std::move(response));
  if (!sent) co_return;
  error_code ignored;  // the other side may have gone
  (void)socket.shutdown(asio::socket_base::shutdown_send, ignored);
  expires_after(kLinger);
  std::size_t read = 0;
  std::array<char, 16384> thrown_away{};
  const auto room = asio::buffer(thrown_away);
  while (read < kMaxLinger) {
    auto [error, size] = co_await socket.async_read_some(room, kAwait);
    if (error) co_return;
    read += size;
  }
}

// ---- accepting ----------------------------------------------------------------

bool HttpServer::State::make_room() {
  if (open < limits.connections) return true;
  if (idle.empty()) return false;
  Connection* longest = idle.front();
  longest->leave_idle();
  longest->close();  // its coroutine sees the error and ends
  return true;
}

void HttpServer::State::take_in(const std::shared_ptr<State>& self, Fd fd) {
  if (!make_room()) {
    ++refused;
    static const std::string full_text = [] {
      const Response full = refuse(kUnavailable, "the server has too many connections",
                                   "wait, or raise max_connections in [server] and the limit on "
                                   "open files (ulimit -Hn)");
      const auto& text = std::get<std::string>(full.body);
      const std::string framing = "Content-Length: " + std::to_string(text.size()) + "\r\n";
      return head_text(full, framing, false) + text;
    }();
    (void)::send(fd.get(), full_text.data(), full_text.size(), MSG_NOSIGNAL);  // if it fits
    return;
  }
  Peer peer;
  ucred credentials{};
  socklen_t size = sizeof credentials;
  sockaddr_storage own{};
  socklen_t own_size = sizeof own;
  void* untyped = &own;
  if (::getsockname(fd.get(), static_cast<sockaddr*>(untyped), &own_size) < 0) return;
  peer.is_local_socket = own.ss_family == AF_UNIX;
  if (peer.is_local_socket) {
    if (::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) < 0) return;
    peer.uid = credentials.uid;
    peer.may_be_owner = is_outside(fd.get());
  } else {
    const int on = 1;
    (void)::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // for speed only
    (void)::setsockopt(fd.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);  // half-open ones go
  }
  auto connection = std::make_shared<Connection>(self, own.ss_family, std::move(fd));
  connection->peer = peer;
  begin(loop, Connection::serve(std::move(connection)));
}

// accept4 and not the library's accept, whose sockets a guest would inherit.
Async<void> HttpServer::State::accept_from(std::shared_ptr<State> self,
                                           std::shared_ptr<Stream> listener) {
  asio::steady_timer pause(self->loop);
  while (!self->draining) {
    const bool ready = co_await readable(*listener);
    if (!ready || self->draining) co_return;
    Fd fd(::accept4(listener->native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    const int error = errno;
    if (fd) {
      self->take_in(self, std::move(fd));
      continue;
    }
    if (error != EMFILE && error != ENFILE && error != ENOMEM && error != ENOBUFS) continue;
    if (!self->idle.empty()) {
      self->idle.front()->close();
      self->idle.front()->leave_idle();
    }
    pause.expires_after(kAcceptPause);
    co_await pause.async_wait(kAwait);
  }
}

// ---- the server ---------------------------------------------------------------

HttpServer::HttpServer(Loop& loop, HttpLimits limits, HttpHandler handler)
    : state_(std::make_shared<State>(loop, limits, std::move(handler))) {}

HttpServer::~HttpServer() {
  drain();
  state_->gone = true;
}

void HttpServer::listen(Fd listener) {
  auto stream = std::make_shared<Stream>(state_->loop, listener.release());
  state_->listeners.push_back(stream);
  begin(state_->loop, State::accept_from(state_, std::move(stream)));
}

void HttpServer::drain() {
  state_->draining = true;
  for (const std::shared_ptr<Stream>& listener : state_->listeners) {
    error_code ignored;  // it is being thrown away
    (void)listener->close(ignored);
  }
  state_->listeners.clear();
  for (State::Connection* connection : state_->idle)
    if (!connection->begun) connection->close();
}

Async<bool> HttpServer::drained(Clock::time_point until) {
  const std::shared_ptr<State> state = state_;
  while (state->open > 0) {
    if (Clock::now() >= until) co_return false;
    co_await state->changed.wait_until(until);
  }
  co_return true;
}

void HttpServer::set_limits(HttpLimits limits) { state_->limits = limits; }

std::size_t HttpServer::connections() const { return state_->open; }
std::uint64_t HttpServer::refused_connections() const { return state_->refused; }

}  // namespace belljar::server
