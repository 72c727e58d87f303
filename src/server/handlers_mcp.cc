// MCP over HTTP: the endpoint behind the server's own door.
#include "server/handlers.h"
#include "server/mcp_http.h"

namespace belljar::server {
namespace {

// One exchange: what the endpoint says becomes an answer, whole or streamed.
struct Front {
  Front(Loop& its_loop, std::shared_ptr<Cancel> its_gone)
      : loop(its_loop), ready(its_loop), gone(std::move(its_gone)) {}
  Loop& loop;
  Signal ready;
  std::optional<Response> response;
  std::shared_ptr<EventStream> stream;
  std::shared_ptr<Cancel> gone;
  bool listens = false;  // to what belongs to no request

  void answer(Response with) {
    response = std::move(with);
    ready.raise();
  }
};

McpHttpAnswer answer_to(const std::shared_ptr<Front>& front) {
  McpHttpAnswer answer;
  answer.whole = [front](int status, McpHttpHeaders headers, std::string body) {
    Response response;
    response.status = status;
    response.headers = std::move(headers);
    response.body = std::move(body);
    front->answer(std::move(response));
  };
  answer.begin = [front](McpHttpHeaders headers) {
    front->stream = std::make_shared<EventStream>(front->loop, EventStream::Overflow::ends_stream);
    front->stream->on_abandon([gone = front->gone] { gone->ask(); });
    Response response;
    response.headers = std::move(headers);
    response.headers.emplace_back("Content-Type", "text/event-stream");
    response.body = front->stream;
    response.listens = front->listens;
    front->answer(std::move(response));
  };
  answer.event = [front](std::string text) {
    if (front->stream != nullptr) front->stream->send_text(std::move(text));
  };
  answer.end = [front] {
    if (front->stream != nullptr) front->stream->finish();
  };
  answer.gone = front->gone;
  return answer;
}

}  // namespace

Async<Response> serve_mcp(App& app, Request request) {
  McpHttpRequest asked;
  asked.method = request.method;
  for (auto& [name, value] : request.headers) asked.headers[name] = value;
  asked.body = std::move(request.body);
  asked.principal = principal_of(request).name;
  // What only listens is no request that runs: of those there are as many as sessions.
  if (request.method == "POST") asked.place = request.admitted;
  const auto front = std::make_shared<Front>(app.loop(), request.gone);
  const std::string* method = request.header("mcp-method");
  front->listens =
      request.method == "GET" || (method != nullptr && *method == "subscriptions/listen");
  // Then the endpoint says nothing any more, and nobody would hear it.
  const Cancel::Hearing hearing(
      front->gone, [front] { front->answer(refuse(kUnavailable, "the client has gone")); });
  if (asked.body.size() > session::Beside::kLittle) {
    const session::Beside beside = app.beside(principal_of(request));
    auto read = [body = std::move(asked.body)] { return read_message(body); };
    asked.message = co_await beside.run(session::Beside::kLittle + 1, std::move(read));
    if (app.has_ended()) co_return refuse(kUnavailable, "the server has stopped", kStartsAgain);
    if (front->response) co_return std::move(*front->response);  // who asked has gone
  }
  app.mcp().handle(std::move(asked), answer_to(front));
  while (!front->response) co_await front->ready.wait();
  co_return std::move(*front->response);
}

}  // namespace belljar::server
