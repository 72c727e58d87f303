#include "server/mcp_service.h"

#include <algorithm>

#include "base/json_size.h"
#include "base/printable.h"
#include "server/limits.h"

namespace belljar::server {
namespace {

// Lists change when sessions come and go, which is told; until then they may be kept.
constexpr int kListTtlMs = 60'000;
constexpr std::size_t kMaxCompletions = 100;
constexpr std::size_t kMaxSubscribed = 256;   // of one client
constexpr std::size_t kMaxUri = 4096;         // of what is kept of it
constexpr std::size_t kMaxFilter = 64 << 10;  // of what one of them wants to hear

McpResult named_list(std::string_view key, json::array items) {
  return json::object{{key, std::move(items)}};
}

std::string_view method_of(McpChange::Kind kind) {
  switch (kind) {
    case McpChange::Kind::tools:
      return "notifications/tools/list_changed";
    case McpChange::Kind::prompts:
      return "notifications/prompts/list_changed";
    case McpChange::Kind::resources:
      return "notifications/resources/list_changed";
    case McpChange::Kind::resource:
      return "notifications/resources/updated";
  }
  return {};
}

bool is_cacheable(std::string_view method) {
  return method.ends_with("/list") || method == "resources/read" || method == "server/discover";
}

bool is_true(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_bool() && value->get_bool();
}

}  // namespace

// One subscriptions/listen of the stateless era.
struct McpService::Listening {
  McpExchange* exchange;
  json::object filter;
};

McpService::McpService(Loop& loop, McpFacts facts) : loop_(loop), facts_(std::move(facts)) {}

McpService::~McpService() {
  for (McpPeer* peer : peers_) peer->service_ = nullptr;
}

Async<std::string> McpService::text_of(std::string principal, json::value id, McpResult result) {
  const std::size_t size = result ? weight(*result, session::Beside::kLittle) : 0;
  if (aside_ == nullptr) co_return response_text(id, std::move(result));
  auto write = [id = std::move(id), result = std::move(result)]() mutable {
    return response_text(id, std::move(result));
  };
  const session::Beside beside{*aside_, loop_, std::move(principal)};
  co_return co_await beside.run(size, std::move(write));
}

Async<McpResult> McpService::handle(McpExchange& exchange) {
  McpResult result = co_await route(exchange);
  if (!result || !exchange.context().stateless) co_return result;
  json::object& body = *result;
  if (!body.contains("resultType")) body["resultType"] = "complete";
  if (!body.contains("_meta")) body["_meta"] = json::object();
  body["_meta"].as_object()[kServerInfoKey] = facts_.info();
  if (is_cacheable(exchange.method()) && body["resultType"] == "complete") {
    const bool content = exchange.method() == "resources/read";
    body["ttlMs"] = content ? 0 : kListTtlMs;
    body["cacheScope"] = "private";
  }
  co_return result;
}

Async<McpResult> McpService::route(McpExchange& exchange) {
  const std::string& method = exchange.method();
  if (method == "tools/call") co_return co_await call_tool(exchange);
  if (method == "resources/read") co_return co_await read(exchange);
  if (method == "prompts/get") co_return co_await prompt(exchange);
  if (method == "completion/complete") co_return co_await complete(exchange);
  if (exchange.context().stateless) {
    if (method == "subscriptions/listen") co_return co_await listen(exchange);
    if (method == "server/discover") co_return discover();
  } else if (method == "resources/subscribe" || method == "resources/unsubscribe") {
    co_return subscribe(exchange);
  }
  const std::optional<McpResult> listed = list(exchange);
  if (listed) co_return *listed;
  co_return mcp_fail(mcp_code::no_method, "there is no method " + method);
}

McpResult McpService::discover() const {
  return json::object{
      {"supportedVersions", json::array(std::begin(kMcpVersions), std::end(kMcpVersions))},
      {"capabilities", facts_.capabilities},
      {"instructions", facts_.instructions}};
}

std::optional<McpResult> McpService::list(McpExchange& exchange) {
  const std::string& method = exchange.method();
  json::array items;
  std::string_view key;
  for (const auto& provider : providers_) {
    if (method == "tools/list") key = "tools", provider->add_tools(items);
    if (method == "prompts/list") key = "prompts", provider->add_prompts(items);
    if (method == "resources/list") key = "resources", provider->add_resources(exchange, items);
    if (method == "resources/templates/list")
      key = "resourceTemplates", provider->add_templates(items);
  }
  if (key.empty()) return std::nullopt;
  // Everything is on the first page, so no cursor is one of ours.
  if (exchange.params().contains("cursor"))
    return mcp_fail(mcp_code::invalid_params, "there is no such cursor");
  return named_list(key, std::move(items));
}

// ---- tools, resources, prompts ------------------------------------------------

Async<McpResult> McpService::call_tool(McpExchange& exchange) {
  const std::string name = text_at(exchange.params(), "name");
  json::value given = exchange.take_arguments();
  if (!given.is_null() && !given.is_object())
    co_return mcp_fail(mcp_code::invalid_params, "arguments must be an object");
  json::object arguments;
  if (given.is_object()) arguments = std::move(given.get_object());
  for (const auto& provider : providers_) {
    const bool is_last = provider == providers_.back();
    json::object its = is_last ? std::move(arguments) : arguments;
    std::optional<McpResult> result = co_await provider->call_tool(exchange, name, std::move(its));
    if (result) co_return *std::move(result);
  }
  co_return mcp_fail(mcp_code::invalid_params, "there is no tool " + printable(name));
}

Async<McpResult> McpService::read(McpExchange& exchange) {
  const std::string uri = text_at(exchange.params(), "uri");
  for (const auto& provider : providers_) {
    std::optional<McpResult> result = co_await provider->read(exchange, uri);
    if (result) co_return *std::move(result);
  }
  json::object about;
  about["uri"] = uri;
  co_return mcp_fail(mcp_code::invalid_params, "there is no such resource", std::move(about));
}

Async<McpResult> McpService::prompt(McpExchange& exchange) {
  const std::string name = text_at(exchange.params(), "name");
  json::object arguments;
  if (const json::object* given = object_at(exchange.params(), "arguments")) arguments = *given;
  for (const auto& provider : providers_) {
    std::optional<McpResult> result = co_await provider->prompt(exchange, name, arguments);
    if (result) co_return *std::move(result);
  }
  co_return mcp_fail(mcp_code::invalid_params, "there is no prompt " + name);
}

Async<McpResult> McpService::complete(McpExchange& exchange) {
  const json::object* ref = object_at(exchange.params(), "ref");
  const json::object* argument = object_at(exchange.params(), "argument");
  if (ref == nullptr || argument == nullptr)
    co_return mcp_fail(mcp_code::invalid_params, "ref and argument are needed");
  std::string what = text_at(*ref, "type") == "ref/prompt" ? text_at(*ref, "name") : "";
  if (what.empty()) what = text_at(*ref, "uri");
  const std::string name = text_at(*argument, "name");
  const std::string begun = text_at(*argument, "value");
  std::vector<std::string> values;
  for (const auto& provider : providers_) {
    const std::vector<std::string> more = co_await provider->complete(exchange, what, name, begun);
    values.insert(values.end(), more.begin(), more.end());
  }
  const std::size_t total = values.size();
  values.resize(std::min(total, kMaxCompletions));
  json::object completion;
  completion["values"] = json::array(values.begin(), values.end());
  completion["total"] = total;
  completion["hasMore"] = total > values.size();
  json::object result;
  result["completion"] = std::move(completion);
  co_return result;
}

// ---- changes ------------------------------------------------------------------

McpResult McpService::subscribe(McpExchange& exchange) {
  const std::string uri = text_at(exchange.params(), "uri");
  std::set<std::string>& subscribed = exchange.peer()->subscribed;
  if (uri.empty()) return mcp_fail(mcp_code::invalid_params, "uri is missing");
  if (uri.size() > kMaxUri) return mcp_fail(mcp_code::invalid_params, "uri is too long");
  if (exchange.method() == "resources/unsubscribe")
    subscribed.erase(uri);
  else if (subscribed.size() >= kMaxSubscribed)
    return mcp_fail(mcp_code::invalid_params, "there are too many subscriptions");
  else
    subscribed.insert(uri);
  return json::object();
}

Async<McpResult> McpService::listen(McpExchange& exchange) {
  const json::object* wanted = object_at(exchange.params(), "notifications");
  if (wanted == nullptr) co_return mcp_fail(mcp_code::invalid_params, "notifications is missing");
  const std::string& principal = exchange.peer()->principal();
  const auto listening = std::ranges::count_if(listening_, [&](const Listening* each) {
    return each->exchange->peer()->principal() == principal;
  });
  if (static_cast<std::size_t>(listening) >= kMaxListening)
    co_return mcp_fail(mcp_code::invalid_request, "there are too many that listen already");
  if (weight(*wanted, kMaxFilter) > kMaxFilter)
    co_return mcp_fail(mcp_code::invalid_params, "notifications is too long");
  Listening mine{.exchange = &exchange, .filter = *wanted};
  json::object meta;
  meta[kSubscriptionKey] = exchange.id();
  json::object acknowledged;
  acknowledged["_meta"] = meta;
  acknowledged["notifications"] = *wanted;
  exchange.notify("notifications/subscriptions/acknowledged", std::move(acknowledged));
  listening_.insert(&mine);
  Signal end(loop_);
  {
    const Cancel::Hearing hearing(exchange.cancel(), [&end] { end.raise(); });
    while (!exchange.cancel()->asked()) co_await end.wait();
  }
  listening_.erase(&mine);
  json::object result;
  result["_meta"] = std::move(meta);
  co_return result;
}

void McpService::tell(const McpChange& change) {
  using Kind = McpChange::Kind;
  const std::string_view method = method_of(change.kind);
  json::object params;
  if (change.kind == Kind::resource) params["uri"] = change.uri;
  for (McpPeer* peer : peers_) {
    if (peer->principal() != change.principal && !change.principal.empty()) continue;
    if (change.kind == Kind::resource && !peer->subscribed.contains(change.uri)) continue;
    peer->send(peer->connection_.notify(method, params));
  }
  for (Listening* listening : listening_) {
    if (listening->exchange->peer()->principal() != change.principal && !change.principal.empty())
      continue;
    const json::object& filter = listening->filter;
    bool wanted = (change.kind == Kind::tools && is_true(filter, "toolsListChanged")) ||
                  (change.kind == Kind::prompts && is_true(filter, "promptsListChanged")) ||
                  (change.kind == Kind::resources && is_true(filter, "resourcesListChanged"));
    const json::value* uris = filter.if_contains("resourceSubscriptions");
    if (change.kind == Kind::resource && uris != nullptr && uris->is_array())
      wanted =
          std::ranges::find(uris->get_array(), json::value(change.uri)) != uris->get_array().end();
    if (!wanted) continue;
    json::object tagged = params;
    tagged["_meta"] = {{kSubscriptionKey, listening->exchange->id()}};
    listening->exchange->notify(method, std::move(tagged));
  }
}

}  // namespace belljar::server
