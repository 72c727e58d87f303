#include "server/mcp_connection.h"

#include <algorithm>
#include <array>

#include "base/json_size.h"

namespace belljar::server {
namespace {

constexpr std::array<std::string_view, 8> kLevels = {"debug", "info",     "notice", "warning",
                                                     "error", "critical", "alert",  "emergency"};

// A client that asks and never waits must not make us keep everything.
constexpr std::size_t kMaxOpen = 1000;
constexpr std::size_t kMaxCapabilities = 64 << 10;  // kept with the connection

json::array versions() { return {kMcpVersions[0], kMcpVersions[1], kMcpVersions[2]}; }

json::value progress_token(const json::object& params) {
  const json::object* meta = object_at(params, "_meta");
  const json::value* token = meta != nullptr ? meta->if_contains("progressToken") : nullptr;
  // It is sent back with all that is said of the call.
  return token != nullptr && is_id(*token) ? *token : json::value();
}

}  // namespace

std::string_view name(LogLevel level) { return kLevels.at(static_cast<std::size_t>(level)); }

std::optional<LogLevel> log_level(std::string_view name) {
  const auto* found = std::ranges::find(kLevels, name);
  if (found == kLevels.end()) return std::nullopt;
  return static_cast<LogLevel>(found - kLevels.begin());
}

std::string key_of(const json::value& id) { return json::serialize(id); }

bool is_stateless(const McpRequest& request) {
  if (request.method == "server/discover" || request.method == "subscriptions/listen") return true;
  const json::object* meta = object_at(request.params, "_meta");
  return meta != nullptr && meta->contains(kVersionKey);
}

std::vector<McpConnection::Step> McpConnection::receive(std::string_view text) {
  auto message = read_message(text);
  if (message) return receive(*std::move(message));
  Send answer{.text = response_text(message.error().id, std::unexpected(message.error().error)),
              .about = {},
              .last = true,
              .error = message.error().error.code};
  if (!message.error().id.is_null()) answer.about = key_of(message.error().id);
  return {std::move(answer)};
}

std::vector<McpConnection::Step> McpConnection::receive(McpMessage message) {
  return std::visit([this](auto& one) { return take(std::move(one)); }, message);
}

// ---- requests -----------------------------------------------------------------

std::expected<McpContext, McpError> McpConnection::context_of(const McpRequest& request) const {
  McpContext context;
  context.progress_token = progress_token(request.params);
  if (!only_stateless_ && !is_stateless(request)) {
    if (!version_) return mcp_fail(mcp_code::invalid_request, "initialize comes first");
    context.version = *version_;
    context.client = client_;
    context.log_level = level_.value_or(LogLevel::info);
    return context;
  }
  const json::object* meta = object_at(request.params, "_meta");
  if (meta == nullptr) return mcp_fail(mcp_code::invalid_params, "params._meta is missing");
  const json::string* version = string_at(*meta, kVersionKey);
  if (version == nullptr)
    return mcp_fail(mcp_code::invalid_params, "_meta lacks " + std::string(kVersionKey));
  if (*version != kStatelessVersion)
    return mcp_fail(mcp_code::unsupported_version, "this version of the protocol is not spoken",
                    {{"requested", *version}, {"supported", versions()}});
  const json::object* client = object_at(*meta, kCapabilitiesKey);
  if (client == nullptr)
    return mcp_fail(mcp_code::invalid_params, "_meta lacks " + std::string(kCapabilitiesKey));
  if (weight(*client, kMaxCapabilities) > kMaxCapabilities)
    return mcp_fail(mcp_code::invalid_params, "capabilities is too long");
  context.stateless = true;
  context.version = std::string(*version);
  context.client = *client;
  context.log_level = log_level(text_at(*meta, kLogLevelKey));
  return context;
}

std::vector<McpConnection::Step> McpConnection::take(McpRequest request) {
  const std::string key = key_of(request.id);
  auto answer = [&](McpResult result) -> std::vector<Step> {
    const int code = result ? 0 : result.error().code;
    return {Send{.text = response_text(request.id, std::move(result)),
                 .about = key,
                 .last = true,
                 .error = code}};
  };
  const bool stateless = only_stateless_ || is_stateless(request);
  if (!stateless && request.method == "initialize") return answer(initialize(request.params));
  if (!stateless && request.method == "ping") return answer(json::object());
  std::expected<McpContext, McpError> context = context_of(request);
  if (!context) return answer(std::unexpected(context.error()));
  if (!stateless && request.method == "logging/setLevel") return answer(set_level(request.params));
  if (open_.contains(key))
    return answer(mcp_fail(mcp_code::invalid_request, "a request with this id is under way"));
  if (open_.size() >= kMaxOpen)
    return answer(mcp_fail(mcp_code::internal, "too many requests are under way"));
  open_[key] = {.id = request.id, .context = *context};
  return {Begin{.key = key, .request = std::move(request), .context = *std::move(context)}};
}

McpResult McpConnection::initialize(const json::object& params) {
  if (version_) return mcp_fail(mcp_code::invalid_request, "the connection is initialized");
  const json::string* asked = string_at(params, "protocolVersion");
  if (asked == nullptr) return mcp_fail(mcp_code::invalid_params, "protocolVersion is missing");
  const json::object* client = object_at(params, "capabilities");
  if (client != nullptr && weight(*client, kMaxCapabilities) > kMaxCapabilities)
    return mcp_fail(mcp_code::invalid_params, "capabilities is too long");
  const bool spoken =
      *asked != kStatelessVersion &&
      std::ranges::find(kMcpVersions, std::string_view(*asked)) != std::end(kMcpVersions);
  version_ = spoken ? std::string(*asked) : std::string(kLatestStateful);
  if (client != nullptr) client_ = *client;
  json::object capabilities = facts_.capabilities;
  capabilities["logging"] = json::object();
  return json::object{{"protocolVersion", *version_},
                      {"capabilities", std::move(capabilities)},
                      {"serverInfo", facts_.info()},
                      {"instructions", facts_.instructions}};
}

McpResult McpConnection::set_level(const json::object& params) {
  const std::optional<LogLevel> level = log_level(text_at(params, "level"));
  if (!level) return mcp_fail(mcp_code::invalid_params, "there is no such level");
  level_ = level;
  return json::object();
}

std::vector<McpConnection::Step> McpConnection::take(const McpNotice& notice) {
  if (notice.method != "notifications/cancelled") return {};
  const json::value* id = notice.params.if_contains("requestId");
  if (id == nullptr || !is_id(*id)) return {};
  const std::string key = key_of(*id);
  if (open_.erase(key) == 0) return {};  // it was answered meanwhile
  forget_questions(key);
  return {Stop{.key = key}};
}

std::vector<McpConnection::Step> McpConnection::take(McpResponse response) {
  const json::string* id = response.id.if_string();
  if (id == nullptr || questions_.erase(std::string(*id)) == 0) return {};  // none of ours
  return {Heard{.question = std::string(*id), .result = std::move(response.result)}};
}

// What the client answers to them no longer matters.
void McpConnection::forget_questions(const std::string& about) {
  std::erase_if(questions_, [&](const auto& question) { return question.second == about; });
}

// ---- what we say --------------------------------------------------------------

std::optional<McpConnection::Send> McpConnection::finish(const std::string& key, McpResult result) {
  const int code = result ? 0 : result.error().code;
  const auto found = open_.find(key);
  if (found == open_.end()) return std::nullopt;
  return finish_with(key, response_text(found->second.id, std::move(result)), code);
}

json::value McpConnection::id_of(const std::string& key) const {
  const auto found = open_.find(key);
  return found != open_.end() ? found->second.id : json::value();
}

std::optional<McpConnection::Send> McpConnection::finish_with(const std::string& key,
                                                              std::string text, int code) {
  if (open_.erase(key) == 0) return std::nullopt;
  forget_questions(key);
  return Send{.text = std::move(text), .about = key, .last = true, .error = code};
}

std::optional<McpConnection::Send> McpConnection::progress(const std::string& key, double done,
                                                           std::optional<double> total,
                                                           const std::string& message) {
  const auto found = open_.find(key);
  if (found == open_.end() || found->second.context.progress_token.is_null()) return std::nullopt;
  if (done <= found->second.progress) return std::nullopt;
  found->second.progress = done;
  json::object params{{"progressToken", found->second.context.progress_token}, {"progress", done}};
  if (total) params["total"] = *total;
  if (!message.empty()) params["message"] = message;
  return Send{.text = notice_text("notifications/progress", std::move(params)), .about = key};
}

std::optional<McpConnection::Send> McpConnection::log(const std::string& key, LogLevel level,
                                                      json::value data) {
  const auto found = open_.find(key);
  if (found == open_.end()) return std::nullopt;
  const std::optional<LogLevel> wanted = found->second.context.log_level;
  if (!wanted || level < *wanted) return std::nullopt;
  json::object params{{"level", name(level)}, {"logger", facts_.name}, {"data", std::move(data)}};
  return Send{.text = notice_text("notifications/message", std::move(params)), .about = key};
}

std::pair<std::string, McpConnection::Send> McpConnection::ask(const std::string& about,
                                                               std::string_view method,
                                                               json::object params) {
  std::string id = "belljar-" + std::to_string(++asked_);
  questions_[id] = about;
  return {id, Send{.text = request_text(id, method, std::move(params)), .about = about}};
}

std::optional<McpConnection::Send> McpConnection::notify(std::string_view method,
                                                         json::object params) const {
  if (!version_) return std::nullopt;
  return Send{.text = notice_text(method, std::move(params)), .about = {}};
}

}  // namespace belljar::server
