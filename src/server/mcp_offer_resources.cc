// Resources of sessions: session://ID/log and session://ID/files/PATH.
#include <unistd.h>

#include <algorithm>

#include "base/base64.h"
#include "base/syscall.h"
#include "base/utf8.h"
#include "server/mcp_offer.h"
#include "server/message.h"
#include "server/session_files.h"
#include "session/mime.h"

namespace belljar::server {
namespace {

constexpr std::string_view kScheme = "session://";
constexpr std::size_t kMaxFile = std::size_t{8} << 20;

struct Uri {
  std::string session;
  std::string rest;  // "log", or "files/PATH"
};

std::optional<Uri> parse_uri(std::string_view uri) {
  if (!uri.starts_with(kScheme)) return std::nullopt;
  uri.remove_prefix(kScheme.size());
  const std::size_t slash = uri.find('/');
  if (slash == uri.npos) return std::nullopt;
  std::optional<std::string> session = percent_decode(uri.substr(0, slash));
  std::optional<std::string> rest = percent_decode(uri.substr(slash + 1));
  if (!session || !rest) return std::nullopt;
  return Uri{std::move(*session), std::move(*rest)};
}

tools::Result<std::string> read_file(const session::Look& look, const std::string& path) {
  using tools::Kind;
  const Result<session::SessionView> seen = look();
  if (!seen) return tools::refuse(Kind::failed, seen.error().message());
  const session::SessionView& view = *seen;
  const tools::Workspace files = TRY(workspace_of(view));
  const tools::OpenFile file = TRY(files.open_file("read", path));
  // A link may lead to what the guest sees elsewhere; that is no file of the session's.
  if (!file.inside.starts_with(view.workdir + "/"))
    return tools::refuse(Kind::outside, path + " is not in the workdir");
  if (static_cast<std::size_t>(file.st.st_size) > kMaxFile)
    return tools::refuse(Kind::too_large, path + " is larger than 8 MiB");
  std::string bytes(static_cast<std::size_t>(file.st.st_size) + 1, '\0');
  std::size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t n =
        retry([&] { return ::read(file.fd.get(), bytes.data() + size, bytes.size() - size); });
    if (n < 0) return tools::refuse_errno("read " + path, errno);
    if (n == 0) break;
    size += static_cast<std::size_t>(n);
  }
  bytes.resize(size);
  return bytes;
}

json::object contents(json::object one) {
  json::array list;
  list.push_back(std::move(one));
  json::object result;
  result["contents"] = std::move(list);
  return result;
}

json::object file_contents(const std::string& uri, const std::string& path,
                           const std::string& bytes) {
  json::object one{{"uri", uri}};
  const bool text = is_utf8(bytes) && bytes.find('\0') == bytes.npos;
  one["mimeType"] = session::mime_of(path, text);
  if (text)
    one["text"] = bytes;
  else
    one["blob"] = to_base64(bytes);
  return contents(std::move(one));
}

}  // namespace

std::string file_uri(const std::string& session, const std::string& name) {
  return std::string(kScheme) + session + "/files/" + percent_encode(name, "-_.~/");
}

void McpOffer::add_resources(const McpExchange& exchange, json::array& into) {
  for (const SessionInfo& info : dispatcher_.sessions(exchange.peer()->principal())) {
    const std::string session(name_in(info.id));
    into.push_back({{"uri", std::string(kScheme) + session + "/log"},
                    {"name", "log of " + session},
                    {"description", "the calls of the session and what they wrote"},
                    {"mimeType", "text/plain"}});
    const Told* told = told_of(info.id);
    if (told == nullptr) continue;
    for (const auto& [name, file] : told->files)
      into.push_back({{"uri", file_uri(session, name)},
                      {"name", name},
                      {"mimeType", file.mime},
                      {"size", file.size}});
  }
}

void McpOffer::add_templates(json::array& into) {
  into.push_back({{"uriTemplate", "session://{id}/files/{+path}"},
                  {"name", "file"},
                  {"title", "A file of a session"},
                  {"description", "a file in the session's workdir, by its path there"}});
  into.push_back({{"uriTemplate", "session://{id}/log"},
                  {"name", "log"},
                  {"title", "The log of a session"},
                  {"description", "the calls of the session and what they wrote"},
                  {"mimeType", "text/plain"}});
}

Async<std::optional<McpResult>> McpOffer::read(McpExchange& exchange, std::string uri) {
  const std::optional<Uri> asked = parse_uri(uri);
  if (!asked) co_return std::nullopt;
  // Another's session is as one that is not there.
  const std::string& principal = exchange.peer()->principal();
  const std::string session = whole_name_for(principal, asked->session);
  if (!dispatcher_.may_use(session, principal) || !dispatcher_.engine().has(session))
    co_return std::nullopt;
  if (asked->rest == "log") {
    std::string text;
    if (const Told* told = told_of(session))
      for (const std::string& entry : told->log) text += entry;
    json::object one;
    one["uri"] = uri;
    one["mimeType"] = "text/plain";
    one["text"] = text;
    co_return contents(std::move(one));
  }
  constexpr std::string_view kFiles = "files/";
  if (!asked->rest.starts_with(kFiles)) co_return std::nullopt;
  const std::string path = asked->rest.substr(kFiles.size());
  // By its path in the workdir; what is elsewhere is for the tools.
  if (path.empty() || path.starts_with('/') || (path + "/").find("../") != path.npos)
    co_return std::nullopt;
  // It is the tool `read` by another name, permitted and written down as that is. A person can be
  // asked there; what an approved call has named was given away with its answer.
  const Told* told = told_of(session);
  Decision said;
  said.approved = told != nullptr && told->files.contains(path);
  said.by = "resources/read";
  said.by_nobody = true;
  ToolCall call;
  call.tool = "read";
  call.arguments["path"] = path.starts_with('~') ? "./" + path : path;  // it is no home here
  call.session = session;
  call.principal = principal;
  call.agent = agent_of(exchange);
  call.may_open = false;
  call.decision = std::move(said);
  call.instead = [this, uri](ToolCall& permitted) { return read_permitted(permitted, uri); };
  ToolAnswer answer = co_await dispatcher_.call(std::move(call));
  if (answer.error_type == "denied" || answer.error_type == "not_approved")
    co_return mcp_fail(mcp_code::invalid_request,
                       "the permissions of this server do not give it away; try the tool read");
  if (answer.is_error) co_return std::nullopt;
  co_return std::move(answer.whole);
}

Async<ToolAnswer> McpOffer::read_permitted(ToolCall& call, std::string uri) {
  Result<session::Look> look = dispatcher_.engine().look(call.session);
  if (!look) co_return failure(look.error());
  const std::string path = text_at(call.arguments, "path");
  std::string owner = call.principal;
  auto work = [look = std::move(*look), path, uri]() -> tools::Result<json::object> {
    return file_contents(uri, path, TRY(read_file(look, path)));
  };
  tools::Result<json::object> read =
      co_await dispatcher_.engine().aside().run(service_.loop(), std::move(owner), std::move(work));
  if (!read) co_return tool_error(std::string(name(read.error().kind)), read.error().message());
  ToolAnswer answer;
  answer.whole = *std::move(read);
  co_return answer;
}

Async<std::vector<std::string>> McpOffer::complete(McpExchange& exchange, std::string ref,
                                                   std::string argument, std::string begun) {
  std::vector<std::string> found;
  auto add = [&](const std::string& value) {
    if (value.starts_with(begun)) found.push_back(value);
  };
  const std::vector<SessionInfo> mine = dispatcher_.sessions(exchange.peer()->principal());
  std::string only;
  if (const json::object* context = object_at(exchange.params(), "context"))
    if (const json::object* given = object_at(*context, "arguments")) only = text_at(*given, "id");
  const bool is_ours = ref.starts_with(kScheme) || ref == "explore_dataset";
  for (const SessionInfo& info : mine) {
    if (!is_ours) break;
    const std::string session(name_in(info.id));
    if (argument == "id") add(session);
    const Told* told = told_of(info.id);
    const bool here = only.empty() || only == session;
    if (argument == "path" && told != nullptr && here)
      for (const auto& [name, file] : told->files) add(name);
  }
  co_return found;
}

}  // namespace belljar::server
