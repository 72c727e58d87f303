#include "server/origin.h"

#include <algorithm>
#include <cctype>

namespace belljar::server {
namespace {

bool is_known(std::string_view host, const Names& names) {
  return host == "localhost" || host == "127.0.0.1" || host == "[::1]" ||
         std::ranges::find(names.hosts, host) != names.hosts.end();
}

bool is_number(std::string_view text) {
  return text.size() <= 5 && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// A page of our own has our own Host, port and all.
bool is_own(std::string_view origin, std::string_view host_header) {
  for (std::string_view scheme : {"http://", "https://"})
    if (origin.starts_with(scheme) && origin.substr(scheme.size()) == host_header) return true;
  return false;
}

}  // namespace

PageRules PageRules::of(const Request& request, const Names& names) {
  const std::string* origin = request.header("origin");
  const bool known =
      origin != nullptr && std::ranges::find(names.origins, *origin) != names.origins.end();
  return {.origin = known ? *origin : std::string(), .some_origins = !names.origins.empty()};
}

bool PageRules::asks_before(const Request& request) {
  return request.method == "OPTIONS" && request.header("access-control-request-method") != nullptr;
}

Response PageRules::answer_before(const Request& request, const std::string& methods) const {
  Response answer;
  answer.status = 204;
  answer.headers = {{"Access-Control-Allow-Methods", methods},
                    {"Access-Control-Allow-Headers",
                     "Authorization, Content-Type, Accept, Range, Last-Event-ID, Mcp-Session-Id, "
                     "Mcp-Protocol-Version, Mcp-Method, Mcp-Name"},
                    {"Access-Control-Max-Age", "600"}};
  // Of a page on the open network, to a server that is not.
  if (request.header("access-control-request-private-network") != nullptr)
    answer.headers.emplace_back("Access-Control-Allow-Private-Network", "true");
  return answer;
}

void PageRules::add_to(Response& response) const {
  if (some_origins) response.headers.emplace_back("Vary", "Origin");
  if (origin.empty()) return;
  response.headers.emplace_back("Access-Control-Allow-Origin", origin);
  response.headers.emplace_back(
      "Access-Control-Expose-Headers",
      "Belljar-Call, Mcp-Session-Id, Retry-After, Content-Disposition, Content-Range");
}

std::string host_name_of(std::string_view header) {
  const std::size_t bracket = header.starts_with('[') ? header.find(']') : std::string_view::npos;
  const std::size_t colon = header.find(':', bracket == std::string_view::npos ? 0 : bracket);
  if (header.starts_with('[') && bracket == std::string_view::npos) return {};
  if (colon != std::string_view::npos && !is_number(header.substr(colon + 1))) return {};
  std::string name(header.substr(0, colon));
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

std::optional<Response> refuse_foreign(const Request& request, const Names& names) {
  const std::string* host = request.header("host");
  if (host == nullptr && !request.peer.is_local_socket)
    return refuse(kBadRequest, "the request must have one Host header",
                  "send `Host: localhost`, as every client of HTTP/1.1 does");
  if (!request.peer.is_local_socket && !is_known(host_name_of(*host), names))
    return refuse(kForbidden, "this server does not go by that name",
                  "hosts in [server] lists the names that it has besides localhost");
  const auto has_origin = [](const auto& header) { return header.first == "origin"; };
  if (std::ranges::none_of(request.headers, has_origin)) return std::nullopt;
  const std::string* origin = request.header("origin");
  if (origin != nullptr && std::ranges::find(names.origins, *origin) != names.origins.end())
    return std::nullopt;
  if (origin != nullptr && host != nullptr && !request.peer.is_local_socket &&
      is_own(*origin, *host))
    return std::nullopt;
  return refuse(kForbidden, "pages of that origin may not use this server",
                "origins in [server] lists those that may");
}

}  // namespace belljar::server
