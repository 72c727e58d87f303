// What an engine does with sessions besides calls of tools: makes, describes and ends them, and
// reaches their files.
#include <unistd.h>

#include "base/syscall.h"
#include "engine.h"
#include "layers/layout.h"
#include "server/mcp_offer.h"
#include "server/session_files.h"
#include "tools/tool_table.h"
#include "tools/write.h"

namespace belljar::python {
namespace {

namespace json = boost::json;

const std::string kOwner;  // all sessions are one's
constexpr std::uint64_t kMostRead = std::uint64_t{1} << 30;

json::object failure_json(const tools::Failure& failure) {
  json::object object = error_json("tool", failure);
  object["error"].as_object()["what"] = failure.message();
  object["error"].as_object()["tool_kind"] = name(failure.kind);
  return object;
}

// The root that the workdir lies in: the longest counts.
const session::SessionRoot* root_of_workdir(const session::SessionView& view) {
  const session::SessionRoot* best = nullptr;
  for (const session::SessionRoot& root : view.roots)
    if (is_below(view.workdir, root.inside) &&
        (best == nullptr || root.inside.size() > best->inside.size()))
      best = &root;
  return best;
}

// The workdir on the host.
std::string outside_of(const session::SessionView& view) {
  const session::SessionRoot* root = root_of_workdir(view);
  if (root == nullptr || root->hidden) return {};
  if (root->inside == view.workdir) return root->outside;
  const std::string rest = view.workdir.substr(root->inside == "/" ? 0 : root->inside.size());
  return (root->outside == "/" ? "" : root->outside) + rest;
}

// Under `open` the workdir is no place of its own, and a walk does not begin at `/`, where a guest
// may see something else than the host; but this folder is its own.
session::SessionView with_workdir(session::SessionView view) {
  const session::SessionRoot* root = root_of_workdir(view);
  if (root == nullptr || root->hidden || root->inside == view.workdir) return view;
  session::SessionRoot own = *root;
  own.outside = outside_of(view);
  own.inside = view.workdir;
  own.owned = true;
  view.roots.push_back(std::move(own));
  return view;
}

std::vector<std::pair<std::string, std::string>> links_in(const json::object& request) {
  std::vector<std::pair<std::string, std::string>> links;
  for (const auto& member : object_in(request, "links"))
    if (member.value().is_string())
      links.emplace_back(member.key(), std::string(member.value().get_string()));
  return links;
}

// What the file calls reach.
tools::Result<tools::Workspace> reached(const session::Look& look) {
  Result<session::SessionView> view = look();
  if (!view) return tools::refuse(tools::Kind::failed, view.error().message());
  return server::workspace_of(with_workdir(*std::move(view)));
}

tools::Result<std::string> read_whole(const tools::OpenFile& file) {
  const auto size = static_cast<std::uint64_t>(file.st.st_size);
  if (size > kMostRead) return tools::refuse(tools::Kind::too_large, "it is larger than 1 GiB");
  std::string text(size, '\0');
  std::size_t have = 0;
  while (have < text.size()) {
    const ssize_t n =
        retry([&] { return ::read(file.fd.get(), text.data() + have, text.size() - have); });
    if (n < 0) return tools::refuse_errno("read " + file.inside, errno);
    if (n == 0) break;  // somebody cut it meanwhile
    have += static_cast<std::size_t>(n);
  }
  text.resize(have);
  return text;
}

// What became of a plan that was only made to see.
struct Tried {
  Status planned;
  Status starts;
};

}  // namespace

Async<Engine::Answer> Engine::open(json::object request) {
  Result<Asked> asked = read_policy(request, caller_);
  if (!asked) co_return std::unexpected(error_json("policy", asked.error()));
  Result<std::vector<Permissions>> floors = read_permissions(request);
  if (!floors) co_return std::unexpected(error_json("policy", floors.error()));
  Policy policy = std::move(asked->policy);
  const std::vector<std::pair<std::string, std::string>> links = links_in(request);
  const Result<std::vector<std::string>> skills = texts_in(request, "skills");
  if (skills)
    for (const std::string& folder : *skills)
      policy.files.grants.push_back({.path = folder, .access = Access::read, .from = "skills"});
  // What cannot start is better refused now than at the first call. Who insists on everything
  // waits for the probes; else the host is supposed to be a usual one, as by any launch.
  if (policy.mode == Mode::full && !host_) host_ = probe_host(caller_);
  const Policy shared = session::shared_by_sessions(policy, settings_);
  auto try_plan = [shared, host = policy.mode == Mode::full ? *host_ : supposed_,
                   caller = caller_]() -> Tried {
    const Result<Plan> plan = resolve(shared, host, caller, Purpose::explain);
    if (!plan) return {.planned = std::unexpected(plan.error()), .starts = {}};
    return {.planned = {}, .starts = refuse_lost_promises(*plan)};
  };
  const Tried tried = co_await engine_->aside().run(loop_, kOwner, std::move(try_plan));
  if (!tried.planned) co_return std::unexpected(error_json("failed", tried.planned.error()));
  if (!tried.starts)
    co_return std::unexpected(launch_error_json(tried.starts.error(), shared, caller_));

  server::DispatchSettings settings;
  settings.floors = std::move(*floors);
  settings.approval_patience =
      std::chrono::milliseconds(number_in(request, "approval_patience_ms", 300'000));
  auto opened = std::make_shared<Opened>();
  opened->dispatcher =
      std::make_unique<server::Dispatcher>(loop_, *engine_, std::move(settings), server::Audit());
  const Result<std::string> id = opened->dispatcher->open("", std::move(policy));
  if (!id) co_return std::unexpected(error_json("failed", id.error()));
  sessions_[*id] = opened;
  if (!links.empty()) {
    const Result<session::SessionView> view = co_await engine_->view(*id, kOwner);
    const std::string folder = view ? outside_of(*view) : std::string();
    Result<Links> made = Links::make(folder, links);
    if (!made) {
      (void)close(*id);  // it was made just now
      co_return std::unexpected(error_json("failed", made.error()));
    }
    if (!settings_.workdir.empty()) opened->links = std::move(*made);
  }
  json::object answer;
  answer["session"] = *id;
  co_return answer;
}

// A jar that did not start, because this host is not a usual one.
Async<std::optional<json::object>> Engine::unavailable(std::string session, std::string message) {
  const Result<session::SessionView> view = co_await engine_->view(session, kOwner);
  if (!view) co_return std::nullopt;
  const Result<Plan> plan = resolve(view->policy, probe_host(caller_), caller_, Purpose::explain);
  if (!plan) co_return std::nullopt;
  const Status starts = refuse_lost_promises(*plan);
  if (starts || starts.error().message() != message) co_return std::nullopt;
  co_return launch_error_json(starts.error(), view->policy, caller_);
}

Engine::Answer Engine::close(const std::string& session) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return json::object();
  const std::shared_ptr<Opened> opened = found->second;
  sessions_.erase(found);
  const Status closed = opened->dispatcher->close(session, "");
  opened->links.remove();
  if (!closed) return std::unexpected(error_json("failed", closed.error()));
  return json::object();
}

Async<Engine::Answer> Engine::describe(std::string session) {
  const Result<session::SessionView> view = co_await engine_->view(session, kOwner);
  if (!view) co_return std::unexpected(error_json("failed", view.error()));
  json::object answer;
  answer["tools"] = tools::tools_as_json(server::facts_of(*view));
  answer["plan"] = view->plan;
  answer["workdir"] = view->workdir;
  answer["folder"] = outside_of(*view);
  co_return answer;
}

// ---- files --------------------------------------------------------------------

Async<Engine::Answer> Engine::read_file(std::shared_ptr<Call> call, std::string session,
                                        std::string path) {
  Result<session::Look> look = engine_->look(session);
  if (!look) co_return std::unexpected(error_json("failed", look.error()));
  auto work = [look = *std::move(look), path]() -> tools::Result<std::string> {
    const tools::Workspace files = TRY(reached(look));
    const tools::OpenFile file = TRY(files.open_file("read", path));
    return read_whole(file);
  };
  const tools::Result<std::string> text =
      co_await engine_->aside().run(loop_, kOwner, std::move(work));
  if (!text) co_return std::unexpected(failure_json(text.error()));
  call->tell('b', *text);
  co_return json::object();
}

Async<Engine::Answer> Engine::write_file(std::string session, std::string path, std::string data) {
  Result<session::Look> look = engine_->look(session);
  if (!look) co_return std::unexpected(error_json("failed", look.error()));
  tools::WriteCall asked{.path = std::move(path), .content = std::move(data)};
  auto work = [look = *std::move(look),
               asked = std::move(asked)]() -> tools::Result<tools::WriteResult> {
    const tools::Workspace files = TRY(reached(look));
    return tools::write(files, asked);
  };
  const tools::Result<tools::WriteResult> written =
      co_await engine_->aside().run(loop_, kOwner, std::move(work));
  if (!written) co_return std::unexpected(failure_json(written.error()));
  json::object answer;
  answer["path"] = written->path;
  answer["bytes"] = written->bytes;
  co_return answer;
}

Async<Engine::Answer> Engine::list_files(std::string session, std::string path) {
  Result<session::Look> look = engine_->look(session);
  if (!look) co_return std::unexpected(error_json("failed", look.error()));
  auto work = [look = *std::move(look), path]() -> tools::Result<json::object> {
    const tools::Workspace files = TRY(reached(look));
    return server::list_folder(files, path);
  };
  const tools::Result<json::object> listed =
      co_await engine_->aside().run(loop_, kOwner, std::move(work));
  if (!listed) co_return std::unexpected(failure_json(listed.error()));
  co_return *listed;
}

}  // namespace belljar::python
