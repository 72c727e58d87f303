// Files of a session: what a guest made is given out as something to be saved, never as
// something that a browser runs in our origin.
#include <sys/stat.h>

#include <charconv>

#include "server/handlers.h"
#include "server/session_files.h"
#include "tools/write.h"

namespace belljar::server {
namespace {

namespace json = boost::json;

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
      return kConflict;
    case tools::Kind::failed:
      return kConflict;  // a folder that is not empty, a full disk
    default:
      return kBadRequest;
  }
}

Response refuse_failure(const tools::Failure& failure) {
  return refuse(fault_of(failure.kind), failure);
}

// What is to be done is done beside the loop: a guest can make a folder of a million names.
template <class Work>
Async<std::invoke_result_t<Work>> beside(App& app, Work work) {
  return app.engine().aside().run(app.loop(), std::move(work));
}

// The file name of a Content-Disposition: RFC 8187, everything but the plainest escaped.
std::string disposition(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string text = "attachment; filename*=UTF-8''";
  for (char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '-' || c == '_';
    if (plain) {
      text.push_back(c);
      continue;
    }
    text.push_back('%');
    text.push_back(kDigits[byte >> 4U]);
    text.push_back(kDigits[byte & 0xfU]);
  }
  return text;
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

// The session's view, while it is known to be the client's.
std::expected<session::SessionView, Response> view_for(App& app, const Request& request) {
  std::expected<const SessionEntry*, Response> entry = app.use_session(request);
  if (!entry) return std::unexpected(std::move(entry.error()));
  Result<session::SessionView> view = app.engine().view((*entry)->id);
  if (!view) return std::unexpected(refuse(kSessionFailed, view.error()));
  return std::move(*view);
}

}  // namespace

Async<Response> list_files(App& app, Request request) {
  std::expected<session::SessionView, Response> view = view_for(app, request);
  if (!view) co_return std::move(view.error());
  const std::string path = query_value(request.query, "path").value_or("");
  auto work = [view = std::move(*view), path]() -> tools::Result<json::object> {
    const tools::Workspace files = TRY(files_of(view));
    return list_folder(files, path);
  };
  const tools::Result<json::object> listed = co_await beside(app, std::move(work));
  if (!listed) co_return refuse_failure(listed.error());
  co_return answer_json(*listed);
}

Async<Response> download_file(App& app, Request request) {
  std::expected<session::SessionView, Response> view = view_for(app, request);
  if (!view) co_return std::move(view.error());
  const std::string path = parameter(request, "path");
  using Opened = tools::Result<std::shared_ptr<tools::OpenFile>>;
  auto work = [view = std::move(*view), path]() -> Opened {
    const tools::Workspace files = TRY(files_of(view));
    return std::make_shared<tools::OpenFile>(TRY(files.open_file("download", path)));
  };
  const Opened opened = co_await beside(app, std::move(work));
  if (!opened) co_return refuse_failure(opened.error());
  co_return download(request, std::move(**opened));
}

Async<Response> upload_file(App& app, Request request) {
  std::expected<session::SessionView, Response> view = view_for(app, request);
  if (!view) co_return std::move(view.error());
  const std::string session = parameter(request, "id");
  tools::WriteCall call{.path = parameter(request, "path"), .content = std::move(request.body)};
  auto work = [view = std::move(*view),
               call = std::move(call)]() -> tools::Result<tools::WriteResult> {
    const tools::Workspace files = TRY(files_of(view));
    return tools::write(files, call);
  };
  const tools::Result<tools::WriteResult> written = co_await beside(app, std::move(work));
  if (!written) co_return refuse_failure(written.error());
  json::object answer;
  answer["path"] = written->path;
  answer["bytes"] = written->bytes;
  answer["created"] = written->created;
  app.events().publish("file_uploaded", session, answer);
  co_return answer_json(answer, 201);
}

Async<Response> delete_file(App& app, Request request) {
  std::expected<session::SessionView, Response> view = view_for(app, request);
  if (!view) co_return std::move(view.error());
  const std::string path = parameter(request, "path");
  auto work = [view = std::move(*view), path]() -> tools::Status {
    const tools::Workspace files = TRY(files_of(view));
    return remove_entry(files, path);
  };
  const tools::Status removed = co_await beside(app, std::move(work));
  if (!removed) co_return refuse_failure(removed.error());
  Response done;
  done.status = 204;
  co_return done;
}

}  // namespace belljar::server
