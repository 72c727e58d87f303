#include "server/session_skills.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

namespace belljar::server {

std::expected<void, Response> grant_skills(const App& app, const std::vector<std::string>& wanted,
                                           const Principal& principal, SessionEntry& entry) {
  for (const std::string& name : wanted) {
    const Skill* skill = app.skills().find(name, principal);
    if (skill == nullptr)
      return std::unexpected(refuse(kNotFound, "skills: there is no skill " + name, kWhichSkills));
    const std::string folder = app.skills().folder_of(*skill);
    if (entry.skills.contains(skill->name))
      return std::unexpected(refuse(kBadRequest, "skills: there are two of " + skill->name,
                                    "name each once, by its id or its name"));
    entry.skills[skill->name] = {.folder = folder, .description = skill->description};
    entry.policy.files.credentials.push_back(
        {.source = folder, .destination = "skills/" + skill->name, .from = "skills"});
  }
  return {};
}

namespace {

Status link(const session::Look& look, const std::map<std::string, SessionSkill>& wanted) {
  const session::SessionView view = TRY(look());
  const auto is_at = [&](const std::string& inside) {
    return std::ranges::find(view.roots, inside, &session::SessionRoot::inside);
  };
  const auto workdir = is_at(view.workdir);
  for (const auto& [name, skill] : wanted) {
    if (is_at(view.workdir + "/skills/" + name) != view.roots.end()) continue;
    if (workdir == view.roots.end()) return fail("there is no workdir to have skills in");
    const Fd top = TRY(open_path(workdir->outside.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    // O_NOFOLLOW: in a workdir that is shared a guest may have been here before.
    const Fd skills(::openat(top.get(), "skills", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!skills) return fail("open skills", errno);
    (void)::unlinkat(skills.get(), name.c_str(), AT_REMOVEDIR);  // what it would be mounted on
    if (::symlinkat(skill.folder.c_str(), skills.get(), name.c_str()) < 0 && errno != EEXIST)
      return fail("make skills/" + name, errno);
  }
  return {};
}

}  // namespace

Async<Status> link_skills(App& app, const SessionEntry& entry) {
  if (entry.skills.empty()) co_return Status();
  Result<session::Look> look = app.engine().look(entry.id());
  if (!look) co_return std::unexpected(look.error());
  std::string owner = entry.owner;
  auto work = [look = std::move(*look), skills = entry.skills] { return link(look, skills); };
  co_return co_await app.engine().aside().run(app.loop(), std::move(owner), std::move(work));
}

}  // namespace belljar::server
