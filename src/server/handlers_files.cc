// Files of a session: what a guest made is given out as something to be saved, never as
// something that a browser runs in our origin.
#include <sys/stat.h>

#include <charconv>
#include <variant>

#include "server/handlers.h"
#include "server/session_files.h"
#include "tools/write.h"

namespace belljar::server {
namespace {

Fault fault_of(tools::Kind kind) {
  switch (kind) {
    case tools::Kind::not_found:
      return kNotFound;
    case tools::Kind::outside:
    case tools::Kind::denied_by_rule:
    case tools::Kind::read_only:
    case tools::Kind::no_permission:
      return kForbidden;
    case tools::Kind::too_large:
      return kTooLarge;
    case tools::Kind::changed:
    case tools::Kind::failed:  // a folder that is not empty
      return kConflict;
    default:
      return kBadRequest;
  }
}

Response refuse_failure(const tools::Failure& failure) {
  return refuse(is_disk_full(failure) ? kDiskFull : fault_of(failure.kind), failure);
}

// The file name of a Content-Disposition: RFC 8187, everything but the plainest escaped.
std::string disposition(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return "attachment; filename*=UTF-8''" + percent_encode(name, "-_.");
}

struct Range {
  std::uint64_t first = 0;
  std::uint64_t length = 0;
};

// One range of bytes; several, or what is none, is as if nothing was said. nullopt in the
// result: it lies outside.
std::optional<std::optional<Range>> parse_range(std::string_view text, std::uint64_t size) {
  constexpr std::string_view kUnit = "bytes=";
  if (!text.starts_with(kUnit) || text.find(',') != text.npos) return std::nullopt;
  text.remove_prefix(kUnit.size());
  const std::size_t dash = text.find('-');
  if (dash == text.npos) return std::nullopt;
  auto number = [](std::string_view digits) -> std::optional<std::uint64_t> {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.begin(), digits.end(), value);
    if (error != std::errc() || end != digits.end()) return std::nullopt;
    return value;
  };
  const std::string_view first_text = text.substr(0, dash), last_text = text.substr(dash + 1);
  const std::optional<std::uint64_t> first = number(first_text), last = number(last_text);
  if (first_text.empty()) {  // the last so many
    if (!last) return std::nullopt;
    if (*last == 0 || size == 0) return std::optional<Range>();
    const std::uint64_t length = std::min(*last, size);
    return Range{.first = size - length, .length = length};
  }
  if (!first || (!last && !last_text.empty()) || (last && *last < *first)) return std::nullopt;
  if (*first >= size) return std::optional<Range>();
  const std::uint64_t end = last ? std::min(*last, size - 1) : size - 1;
  return Range{.first = *first, .length = end - *first + 1};
}

Response download(const Request& request, tools::OpenFile file) {
  const auto size = static_cast<std::uint64_t>(file.st.st_size);
  Response response;
  response.headers = {{"Content-Type", "application/octet-stream"},
                      {"Content-Disposition", disposition(file.inside)},
                      {"Content-Security-Policy", "sandbox; default-src 'none'"},
                      {"Cross-Origin-Resource-Policy", "same-origin"},
                      {"Accept-Ranges", "bytes"}};
  Range range{.first = 0, .length = size};
  const std::string* header = request.header("range");
  const auto wanted = header != nullptr ? parse_range(*header, size) : std::nullopt;
  if (wanted && !*wanted) {
    Response refusal = refuse(kBadRange, "the file has " + std::to_string(size) + " bytes");
    refusal.headers.emplace_back("Content-Range", "bytes */" + std::to_string(size));
    return refusal;
  }
  if (wanted) {
    range = **wanted;
    response.status = 206;
    response.headers.emplace_back("Content-Range",
                                  "bytes " + std::to_string(range.first) + "-" +
                                      std::to_string(range.first + range.length - 1) + "/" +
                                      std::to_string(size));
  }
  response.body =
      FileBody{.file = std::move(file.fd), .offset = range.first, .length = range.length};
  return response;
}

// What is to be done is done beside the loop: a guest can make a folder of a million names, and
// to find out what it sees may take a search for them.
template <class Act, class Value = std::invoke_result_t<Act, const tools::Workspace&>::value_type>
Async<std::expected<Value, Response>> in_files(App& app, const Request& request, Act act) {
  using Done = std::expected<Value, Response>;
  std::expected<const SessionEntry*, Response> entry = co_await app.use_session(request);
  if (!entry) co_return std::unexpected(std::move(entry.error()));
  Result<session::Look> look = app.engine().look((*entry)->id());
  if (!look) co_return std::unexpected(refuse(kSessionFailed, look.error()));
  auto work = [look = std::move(*look), act = std::move(act)]() -> Done {
    const Result<session::SessionView> view = look();
    if (!view) return std::unexpected(refuse(kSessionFailed, view.error()));
    const tools::Result<tools::Workspace> files = files_of(*view);
    if (!files) return std::unexpected(refuse_failure(files.error()));
    tools::Result<Value> done = act(*files);
    if (!done) return std::unexpected(refuse_failure(done.error()));
    return std::move(*done);
  };
  std::string owner = principal_of(request).name;
  co_return co_await app.engine().aside().run(app.loop(), std::move(owner), std::move(work));
}

}  // namespace

Async<Response> list_files(App& app, Request request) {
  const std::string path = query_value(request.query, "path").value_or("");
  auto list = [path](const tools::Workspace& files) { return list_folder(files, path); };
  std::expected<json::object, Response> listed = co_await in_files(app, request, std::move(list));
  if (!listed) co_return std::move(listed.error());
  co_return answer_json(*listed);
}

Async<Response> download_file(App& app, Request request) {
  auto open = [path = parameter(request, "path")](const tools::Workspace& files) {
    return files.open_file("download", path);
  };
  std::expected<tools::OpenFile, Response> opened =
      co_await in_files(app, request, std::move(open));
  if (!opened) co_return std::move(opened.error());
  co_return download(request, std::move(*opened));
}

Async<Response> upload_file(App& app, Request request) {
  const std::string session = whole_name_for(principal_of(request).name, parameter(request, "id"));
  tools::WriteCall call{.path = parameter(request, "path"), .content = std::move(request.body)};
  auto write = [call = std::move(call)](const tools::Workspace& files) {
    return tools::write(files, call);
  };
  std::expected<tools::WriteResult, Response> written =
      co_await in_files(app, request, std::move(write));
  if (!written) co_return std::move(written.error());
  json::object answer;
  answer["path"] = written->path;
  answer["bytes"] = written->bytes;
  answer["created"] = written->created;
  app.tell("file_uploaded", session, answer);
  co_return answer_json(answer, 201);
}

Async<Response> delete_file(App& app, Request request) {
  auto remove = [path = parameter(request, "path")](
                    const tools::Workspace& files) -> tools::Result<std::monostate> {
    TRY(remove_entry(files, path));
    return std::monostate();
  };
  std::expected<std::monostate, Response> removed =
      co_await in_files(app, request, std::move(remove));
  if (!removed) co_return std::move(removed.error());
  Response done;
  done.status = 204;
  co_return done;
}

}  // namespace belljar::server
