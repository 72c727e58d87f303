#include "server/handlers.h"
#include "server/openapi.h"

namespace belljar::server {
namespace {

Response text_answer(std::string_view type, std::string text) {
  return {.status = 200, .headers = {{"Content-Type", std::string(type)}}, .body = std::move(text)};
}

}  // namespace

Async<Response> get_health(App&, Request) {
  const boost::json::object status{{"status", "ok"}};
  co_return answer_json(status);
}

Async<Response> get_ready(App& app, Request) {
  if (app.is_draining()) co_return refuse(kUnavailable, "the server is stopping", kStartsAgain);
  const boost::json::object status{{"status", "ready"}};
  co_return answer_json(status);
}

Async<Response> get_capabilities(App& app, Request) { co_return answer_json(app.capabilities()); }

Async<Response> get_metrics(App& app, Request) {
  const Gauges gauges = app.gauges();
  co_return text_answer("text/plain; version=0.0.4; charset=utf-8",
                        app.metrics().render(gauges, app.meter()));
}

Async<Response> get_events(App& app, Request request) {
  EventHub::Filter filter;
  filter.principal = principal_of(request);
  if (const std::optional<std::string> only = query_value(request.query, "session");
      only && !only->empty())
    filter.session = whole_name_for(filter.principal.name, *only);
  std::string types = query_value(request.query, "types").value_or("");
  while (!types.empty()) {
    const std::string type = types.substr(0, types.find(','));
    types.erase(0, type.size() + 1);
    filter.types.insert(type);
  }
  std::shared_ptr<EventStream> stream = app.events().subscribe(std::move(filter));
  if (stream == nullptr)
    co_return refuse(kTooMany, "this token has too many event streams open", "close one");
  Response response;
  response.headers = {{"Content-Type", "text/event-stream"}};
  response.body = std::move(stream);
  response.listens = true;
  co_return response;
}

// Anybody may ask for them, so they are made once.
Async<Response> get_openapi(App&, Request) {
  static const boost::json::object document = openapi(routes());
  co_return answer_json(document);
}

Async<Response> get_page(App&, Request) {
  static const std::string text = openapi_page(routes());
  Response page = text_answer("text/html; charset=utf-8", text);
  page.headers.emplace_back("Content-Security-Policy",
                            "default-src 'none'; style-src 'unsafe-inline'; "
                            "frame-ancestors 'none'; base-uri 'none'; form-action 'none'");
  co_return page;
}

}  // namespace belljar::server
