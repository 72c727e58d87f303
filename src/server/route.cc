#include "server/route.h"

namespace belljar::server {
namespace {

std::vector<std::string_view> split(std::string_view path) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t slash = path.find('/');
    parts.push_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return parts;
    path.remove_prefix(slash + 1);
  }
}

bool is_name(std::string_view part) { return part.starts_with('{') && part.ends_with('}'); }
std::string name_in(std::string_view part) { return std::string(part.substr(1, part.size() - 2)); }

// A part that hides a slash in %2F is none: it would be two further down.
std::optional<std::string> decode_part(std::string_view part) {
  std::optional<std::string> text = percent_decode(part);
  if (!text || text->empty() || text->find('/') != std::string::npos) return std::nullopt;
  return text;
}

std::optional<std::string> decode_rest(std::span<const std::string_view> parts) {
  std::string all;
  for (std::string_view part : parts) {
    const std::optional<std::string> text = decode_part(part);
    if (!text) return std::nullopt;
    all += (all.empty() ? "" : "/") + *text;
  }
  return all;
}

std::optional<Parameters> match_pattern(std::string_view pattern,
                                        std::span<const std::string_view> parts) {
  Parameters parameters;
  const std::vector<std::string_view> wanted = split(pattern);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (i >= parts.size()) return std::nullopt;
    if (!is_name(wanted[i])) {
      if (wanted[i] != parts[i]) return std::nullopt;
      continue;
    }
    std::string name = name_in(wanted[i]);
    if (name.ends_with('*')) {
      name.pop_back();
      std::optional<std::string> rest = decode_rest(parts.subspan(i));
      if (!rest) return std::nullopt;
      parameters[name] = std::move(*rest);
      return parameters;
    }
    std::optional<std::string> value = decode_part(parts[i]);
    if (!value) return std::nullopt;
    parameters[name] = std::move(*value);
  }
  if (wanted.size() != parts.size()) return std::nullopt;
  return parameters;
}

}  // namespace

Match match(std::span<const Route> table, std::string_view method, std::string_view path) {
  Match found;
  const std::vector<std::string_view> parts = split(path);
  const std::string_view wanted = method == "HEAD" ? "GET" : method;
  for (const Route& route : table) {
    std::optional<Parameters> parameters = match_pattern(route.pattern, parts);
    if (!parameters) continue;
    if (route.method == wanted)
      return {.route = &route, .parameters = std::move(*parameters), .allowed = {}};
    if (found.allowed.find(route.method) != std::string::npos) continue;
    found.allowed += (found.allowed.empty() ? "" : ", ") + std::string(route.method);
  }
  return found;
}

}  // namespace belljar::server
