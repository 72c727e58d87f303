#include "base/remove_tree.h"
#include "server/handlers.h"
#include "server/multipart.h"
#include "server/skill_archive.h"

namespace belljar::server {
namespace {

namespace json = boost::json;

constexpr std::string_view kWhatASkillIs =
    "a skill is SKILL.md, which begins with name: and description: between lines of ---, and up to "
    "500 plain files beside it";

// A zip as it is, or a form with files.
Result<SkillFiles> read_upload(const std::string& body, const std::string& content_type) {
  const std::string boundary = boundary_in(content_type);
  if (boundary.empty()) return read_skill(TRY(unpack_zip(body)));
  std::vector<Part> parts = TRY(parse_multipart(body, boundary));
  return read_skill(TRY(files_of_form(std::move(parts))));
}

bool is_upload(const std::string& type) {
  return type.starts_with("multipart/form-data") || type == "application/zip" ||
         type == "application/octet-stream";
}

std::expected<const Skill*, Response> skill_to_change(const App& app, const Principal& principal,
                                                      const std::string& called) {
  const Skill* skill = app.skills().find_exactly(called, principal);
  if (skill != nullptr && app.skills().may_change(*skill, principal)) return skill;
  if (app.skills().find(called, principal) == nullptr)
    return std::unexpected(refuse(kNotFound, "there is no such skill", kWhichSkills));
  return std::unexpected(refuse(kForbidden, "the skill belongs to another token", kOnlyItsOwner));
}

// Which skill an upload is a version of; nullptr: a new one's first. What has a name of one's own
// skill is its next version, so that nothing is ever there twice.
std::expected<const Skill*, Response> known_skill(const App& app, const Principal& principal,
                                                  const std::string& id, const std::string& name) {
  if (id.empty()) return app.skills().own(name, principal);
  return skill_to_change(app, principal, id);
}

Async<Response> take_upload(App& app, Request request, std::string id) {
  const Principal principal = principal_of(request);
  const std::string* type = request.header("content-type");
  if (type == nullptr || !is_upload(*type))
    co_return refuse(kUnsupportedMedia, "a skill is a zip, or a form with files",
                     "send multipart/form-data (curl -F files=@SKILL.md) or application/zip");
  std::expected<const Skill*, Response> known = known_skill(app, principal, id, {});
  if (!known) co_return std::move(known.error());
  if (*known != nullptr) id = (*known)->id;  // another may bear its name when it is our turn
  const std::string owner = *known != nullptr ? (*known)->owner : principal.name;
  const session::Turns::Turn turn = co_await app.skill_turns(owner).take();
  if (app.has_ended()) co_return refuse(kUnavailable, "the server is stopping", kStartsAgain);
  using Read = Result<std::shared_ptr<const SkillFiles>>;
  auto read = [body = std::move(request.body), content_type = *type]() -> Read {
    return std::make_shared<const SkillFiles>(TRY(read_upload(body, content_type)));
  };
  const Read files = co_await app.engine().aside().run(app.loop(), principal.name, std::move(read));
  if (!files && files.error().hint.empty())
    co_return refuse(kBadRequest, files.error().message(), kWhatASkillIs);
  if (!files) co_return refuse(kBadRequest, files.error());
  if (app.has_ended()) co_return refuse(kUnavailable, "the server is stopping", kStartsAgain);
  known = known_skill(app, principal, id, (*files)->name);  // it may have been removed meanwhile
  if (!known) co_return std::move(known.error());
  const Result<SkillStore::Place> place = app.skills().place_for(*known, **files, principal);
  if (!place) co_return refuse(kTooMany, place.error().message(), "DELETE what is not needed");
  const Skill skill = app.skills().with(*place, **files, principal);
  auto write = [place = *place, files = *files, skill]() -> Status {
    return SkillStore::write_version(place, *files, skill);
  };
  const Status written =
      co_await app.engine().aside().run(app.loop(), principal.name, std::move(write));
  if (!written)
    co_return refuse(is_disk_full(written.error()) ? kDiskFull : kInternal, written.error());
  const json::object answer = app.skills().add(skill).to_json();
  co_return answer_json(answer, 201);
}

}  // namespace

Async<Response> upload_skill(App& app, Request request) {
  return take_upload(app, std::move(request), {});
}

Async<Response> upload_skill_version(App& app, Request request) {
  std::string id = parameter(request, "id");
  return take_upload(app, std::move(request), std::move(id));
}

Async<Response> list_skills(App& app, Request request) {
  json::array list;
  for (const Skill* skill : app.skills().all(principal_of(request)))
    list.push_back(skill->to_json());
  json::object answer;
  answer["object"] = "list";
  answer["data"] = std::move(list);
  co_return answer_json(answer);
}

Async<Response> get_skill(App& app, Request request) {
  const Skill* skill = app.skills().find(parameter(request, "id"), principal_of(request));
  if (skill == nullptr) co_return refuse(kNotFound, "there is no such skill", kWhichSkills);
  const json::object answer = skill->to_json();
  co_return answer_json(answer);
}

Async<Response> list_skill_versions(App& app, Request request) {
  const Skill* skill = app.skills().find(parameter(request, "id"), principal_of(request));
  if (skill == nullptr) co_return refuse(kNotFound, "there is no such skill", kWhichSkills);
  json::array list;
  for (const std::uint64_t version : skill->versions) {
    json::object one;
    one["object"] = "skill.version";
    one["skill_id"] = skill->id;
    one["version"] = std::to_string(version);
    list.push_back(std::move(one));
  }
  json::object answer;
  answer["object"] = "list";
  answer["data"] = std::move(list);
  co_return answer_json(answer);
}

Async<Response> delete_skill(App& app, Request request) {
  std::expected<const Skill*, Response> skill =
      skill_to_change(app, principal_of(request), parameter(request, "id"));
  if (!skill) co_return std::move(skill.error());
  const std::string id = (*skill)->id;
  // A version that is being written is written first, or it would bring the skill back.
  const session::Turns::Turn turn = co_await app.skill_turns(std::string((*skill)->owner)).take();
  const std::optional<std::string> folder = app.skills().forget(id);
  if (!folder) co_return refuse(kNotFound, "there is no such skill", kWhichSkills);
  // It may have a hundred versions of a thousand files.
  auto remove = [folder = *folder] {
    remove_tree(folder);
    return 0;
  };
  const std::string name = principal_of(request).name;
  (void)co_await app.engine().aside().run(app.loop(), name, std::move(remove));
  Response done;
  done.status = 204;
  co_return done;
}

}  // namespace belljar::server
