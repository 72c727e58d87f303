#include "server/session_skills.h"

#include <sys/stat.h>

namespace belljar::server {

std::expected<void, Response> grant_skills(const App& app, const std::vector<std::string>& wanted,
                                           const Principal& principal, SessionEntry& entry) {
  for (const std::string& name : wanted) {
    const Skill* skill = app.skills().find(name, principal);
    if (skill == nullptr)
      return std::unexpected(refuse(kNotFound, "skills: there is no skill " + name));
    const std::string folder = app.skills().folder_of(*skill);
    if (entry.skills.contains(skill->name))
      return std::unexpected(refuse(kBadRequest, "skills: there are two of " + skill->name));
    entry.skills[skill->name] = folder;
    entry.policy.files.grants.push_back({.path = folder, .access = Access::read, .from = "skills"});
  }
  return {};
}

Status link_skills(App& app, const SessionEntry& entry) {
  if (entry.skills.empty()) return {};
  const session::SessionView view = TRY(app.engine().view(entry.id));
  std::string outside;
  for (const session::SessionRoot& root : view.roots)
    if (root.inside == view.workdir && root.writable) outside = root.outside;
  if (outside.empty()) return fail("the workdir cannot be written, so it has no skills");
  const Fd workdir = TRY(open_path(outside.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (::mkdirat(workdir.get(), "skills", 0755) < 0 && errno != EEXIST)
    return fail("make skills", errno);
  // O_NOFOLLOW: in a workdir that is shared a guest may have been here before.
  const Fd skills(
      ::openat(workdir.get(), "skills", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!skills) return fail("open skills", errno);
  for (const auto& [name, folder] : entry.skills)
    if (::symlinkat(folder.c_str(), skills.get(), name.c_str()) < 0 && errno != EEXIST)
      return fail("make skills/" + name, errno);
  return {};
}

}  // namespace belljar::server
