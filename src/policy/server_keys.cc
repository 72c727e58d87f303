#include "policy/server_keys.h"

#include <algorithm>

namespace belljar {
namespace {

using S = ServerSettings;

constexpr ServerKey kKeys[] = {
    {"listen", Kind::names, &S::listen, "[\"127.0.0.1:8077\"]",
     "where it listens: ADDRESS:PORT, or unix:PATH"},
    {"socket", Kind::path, &S::socket, "serve.sock in the runtime folder",
     "a local socket on which it listens besides; `belljar sessions` uses it, with the "
     "owner's key"},
    {"allow_remote", Kind::flag, &S::allow_remote, "false",
     "listen on addresses that others can reach"},
    {"token_file", Kind::path, &S::token_file, "tokens in the state folder",
     "the tokens, one `NAME SCOPE[,SCOPE] TOKEN` a line; made at the first start"},
    {"skills_dir", Kind::path, &S::skills_dir, "skills in the state folder",
     "where uploaded skills are kept"},
    {"hosts", Kind::names, &S::hosts, "[]",
     "names that the Host of a request may have, besides localhost"},
    {"origins", Kind::names, &S::origins, "[]",
     "origins whose web pages may use it, as https://example.com"},
    {"max_connections", Kind::count, &S::max_connections, "16384",
     "how many connections there may be; the one idle for longest makes room"},
    {"max_requests", Kind::count, &S::max_requests, "64",
     "how many requests of one token may run at once"},
    {"max_requests_total", Kind::count, &S::max_requests_total, "512",
     "the same of all tokens together"},
    {"max_sessions_per_token", Kind::count, &S::max_sessions_per_token, "16",
     "how many sessions a token may have at once"},
    {"idle_timeout", Kind::duration, &S::idle_timeout, "120",
     "how long a connection may wait between requests"},
    {"header_timeout", Kind::duration, &S::header_timeout, "10",
     "how long the head of a request may take"},
    {"body_timeout", Kind::duration, &S::body_timeout, "30",
     "how long the body may take; a large one has more"},
    {"write_timeout", Kind::duration, &S::write_timeout, "30",
     "how long a client may read nothing of what it asked for"},
    {"dispatch_wait", Kind::duration, &S::dispatch_wait, "20",
     "after which /v1/dispatch answers that a call is still running"},
    {"drain_timeout", Kind::duration, &S::drain_timeout, "30",
     "how long requests may go on after the server was told to stop"},
    {"removal_timeout", Kind::duration, &S::removal_timeout, "10",
     "how long removing what guests left may take then; the next start removes the rest"},
    {"approval_timeout", Kind::duration, &S::approval_timeout, "300",
     "how long a call waits for a person to approve it, in `belljar mcp` too; then it is denied"},
};

Status set_text(std::string& to, const ServerKey& key, std::string_view text,
                const Origin& origin) {
  if (text.empty() || text.find('\0') != text.npos)
    return fail(std::string(key.name) + ": an empty text, or one with a NUL byte");
  to = absolute_path(text, origin);
  return {};
}

}  // namespace

std::span<const ServerKey> server_keys() { return kKeys; }

const ServerKey* find_server_key(std::string_view name) {
  const ServerKey* found = std::ranges::find(kKeys, name, &ServerKey::name);
  return found == std::end(kKeys) ? nullptr : found;
}

Status set(ServerSettings& settings, const ServerKey& key, std::span<const std::string> texts,
           const Origin& origin) {
  if (const auto* list = std::get_if<std::vector<std::string> ServerSettings::*>(&key.target)) {
    (settings.*(*list)).assign(texts.begin(), texts.end());
    return {};
  }
  if (texts.size() != 1) return fail(std::string(key.name) + ": must be one value");
  if (const auto* flag = std::get_if<bool ServerSettings::*>(&key.target)) {
    if (texts[0] != "true" && texts[0] != "false")
      return fail(std::string(key.name) + ": must be true or false");
    settings.*(*flag) = texts[0] == "true";
    return {};
  }
  if (const auto* text = std::get_if<std::string ServerSettings::*>(&key.target))
    return set_text(settings.*(*text), key, texts[0], origin);
  const Limit limit = TRY(parse_limit(texts[0], key.name, key.kind));
  if (!limit.value) return fail(std::string(key.name) + ": must have a limit");
  if (const auto* time = std::get_if<std::chrono::milliseconds ServerSettings::*>(&key.target))
    settings.*(*time) = std::chrono::milliseconds(*limit.value);
  else
    settings.*std::get<std::size_t ServerSettings::*>(key.target) = *limit.value;
  return {};
}

}  // namespace belljar
