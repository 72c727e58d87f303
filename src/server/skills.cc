#include "server/skills.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/fd.h"
#include "base/file.h"
#include "base/json_field.h"
#include "base/random.h"
#include "base/remove_tree.h"
#include "server/owned_names.h"

namespace belljar::server {
namespace {

namespace json = boost::json;
namespace fs = std::filesystem;

constexpr std::size_t kMaxAbout = 1 << 20;

Status make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) < 0 && errno != EEXIST) return fail("make " + path, errno);
  return {};
}

Status write_file(const std::string& path, const SkillFile& file) {
  const mode_t mode = file.executable ? 0755 : 0644;
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
  if (!fd) return fail("make " + path, errno);
  std::string_view rest = file.content;
  while (!rest.empty()) {
    const ssize_t size = ::write(fd.get(), rest.data(), rest.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return fail("write " + path, errno);
    rest.remove_prefix(static_cast<std::size_t>(size));
  }
  // Whatever the umask: guests read it as somebody else.
  if (::fchmod(fd.get(), mode) < 0) return fail("chmod " + path, errno);
  return {};
}

// On the disk, at most: what is empty takes a page too, and so does each folder above it.
std::uint64_t room_for(const SkillFiles& skill) {
  constexpr std::uint64_t kPage = 4096;
  std::uint64_t pages = 0;
  for (const SkillFile& file : skill.files)
    pages += file.content.size() / kPage + 1 +
             static_cast<std::uint64_t>(std::ranges::count(file.path, '/'));
  return pages * kPage;
}

Status write_files(const std::string& folder, const SkillFiles& skill) {
  TRY(make_folder(folder));
  for (const SkillFile& file : skill.files) {
    for (std::size_t slash = file.path.find('/'); slash != file.path.npos;
         slash = file.path.find('/', slash + 1))
      TRY(make_folder(folder + "/" + file.path.substr(0, slash)));
    TRY(write_file(folder + "/" + file.path, file));
  }
  return {};
}

Status write_about(const std::string& folder, const Skill& skill) {
  json::object about = skill.to_json();
  about["shared"] = skill.shared;
  about["bytes"] = skill.bytes;
  about["versions"] = json::array(skill.versions.begin(), skill.versions.end());
  return replace_file(folder + "/about.json", json::serialize(about), 0600);
}

std::optional<Skill> read_about(const fs::path& folder) {
  const Result<std::string> text = read_regular(folder / "about.json", kMaxAbout);
  if (!text) return std::nullopt;
  boost::system::error_code error;
  const json::value value = json::parse(*text, error);
  if (error || !value.is_object()) return std::nullopt;
  const json::object& object = value.get_object();
  Skill skill;
  skill.id = folder.filename();
  skill.name = text_of(object, "name");
  skill.description = text_of(object, "description");
  skill.owner = text_of(object, "owner");
  const json::value* shared = object.if_contains("shared");
  skill.shared = shared != nullptr && shared->is_bool() && shared->get_bool();
  if (const json::value* created = object.if_contains("created_at"); created != nullptr)
    skill.created_at = created->is_int64() ? created->get_int64() : 0;
  if (const json::value* bytes = object.if_contains("bytes"); bytes && bytes->is_int64())
    skill.bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(bytes->get_int64(), 0));
  if (const json::value* list = object.if_contains("versions"); list && list->is_array())
    for (const json::value& version : list->get_array())
      if (version.is_int64() && version.get_int64() > 0)
        skill.versions.push_back(static_cast<std::uint64_t>(version.get_int64()));
  if (skill.name.empty() || skill.versions.empty()) return std::nullopt;
  skill.latest_version = skill.versions.back();
  return skill;
}

}  // namespace

json::object Skill::to_json() const {
  json::object object;
  object["id"] = id;
  object["object"] = "skill";
  object["created_at"] = created_at;
  object["name"] = name;
  object["description"] = description;
  object["owner"] = owner;
  object["latest_version"] = std::to_string(latest_version);
  return object;
}

Result<SkillStore> SkillStore::open(std::string folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return fail("make " + folder + ": " + error.message());
  SkillStore store(std::move(folder));
  for (const fs::directory_entry& entry : fs::directory_iterator(store.folder_, error)) {
    if (!entry.path().filename().string().starts_with("skill_")) continue;
    if (std::optional<Skill> skill = read_about(entry.path()))
      store.skills_.emplace(skill->id, std::move(*skill));
  }
  return store;
}

Status SkillStore::write_version(const Place& place, const SkillFiles& files, const Skill& skill) {
  const std::string above = place.folder.substr(0, place.folder.rfind('/'));
  TRY(make_folder(above));
  remove_tree(place.folder);  // of a server that was killed meanwhile
  Status written = write_files(place.folder, files);
  if (written) written = write_about(above, skill);
  if (written) return {};
  remove_tree(place.folder);
  (void)::rmdir(above.c_str());  // of a new skill
  return written;
}

std::vector<const Skill*> SkillStore::all(const Principal& principal) const {
  std::vector<const Skill*> list;
  for (const auto& [id, skill] : skills_)
    if (skill.shared || may_change(skill, principal)) list.push_back(&skill);
  return list;
}

const Skill* SkillStore::find_exactly(const std::string& called, const Principal& principal) const {
  const std::string whole = whole_name_for(principal.name, called);
  for (const Skill* skill : all(principal))
    if (skill->id == called || whole_name(skill->name, skill->owner) == whole) return skill;
  return nullptr;
}

const Skill* SkillStore::find(const std::string& called, const Principal& principal) const {
  if (const Skill* mine = find_exactly(called, principal)) return mine;
  const Skill* found = nullptr;
  for (const auto& [id, skill] : skills_) {
    if (!skill.shared || skill.name != called) continue;
    if (found != nullptr) return nullptr;  // of two administrators: it must be said whose
    found = &skill;
  }
  return found;
}

bool SkillStore::may_change(const Skill& skill, const Principal& principal) const {
  return skill.owner == principal.name || principal.may(Right::admin);
}

const Skill* SkillStore::own(const std::string& name, const Principal& principal) const {
  for (const auto& [id, skill] : skills_)
    if (skill.name == name && skill.owner == principal.name) return &skill;
  return nullptr;
}

Status SkillStore::check_room(const Skill* skill, const SkillFiles& files,
                              const Principal& by) const {
  if (skill == nullptr && skills_.size() >= kMaxSkills) return fail("there are too many skills");
  if (by.may(Right::admin)) return {};
  std::size_t count = 0;
  std::uint64_t bytes = room_for(files);
  for (const auto& [id, one] : skills_) {
    if (one.owner != by.name) continue;
    ++count;
    bytes += one.bytes;
  }
  if (skill == nullptr && count >= kMaxSkillsOfOne)
    return fail("this token has " + std::to_string(count) + " skills, the most allowed");
  if (bytes > kMaxSkillBytesOfOne)
    return fail("the skills of this token would take more than " +
                std::to_string(kMaxSkillBytesOfOne >> 20) + " MiB");
  return {};
}

Result<SkillStore::Place> SkillStore::place_for(const Skill* skill, const SkillFiles& files,
                                                const Principal& by) const {
  TRY(check_room(skill, files, by));
  if (skill != nullptr && skill->versions.size() >= kMaxVersions)
    return fail("the skill has too many versions");
  const std::string id = skill != nullptr ? skill->id : "skill_" + random_hex(12);
  const std::uint64_t version = skill != nullptr ? skill->latest_version + 1 : 1;
  return Place{
      .id = id, .version = version, .folder = folder_ + "/" + id + "/" + std::to_string(version)};
}

Skill SkillStore::with(const Place& place, const SkillFiles& files, const Principal& owner) const {
  Skill skill;
  if (const auto known = skills_.find(place.id); known != skills_.end()) {
    skill = known->second;
  } else {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    skill.id = place.id;
    skill.owner = owner.name;
    skill.shared = owner.may(Right::admin);
    skill.created_at = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  }
  skill.name = files.name;
  skill.description = files.description;
  skill.latest_version = place.version;
  skill.versions.push_back(place.version);
  skill.bytes += room_for(files);
  return skill;
}

const Skill& SkillStore::add(Skill skill) {
  const std::string id = skill.id;
  return skills_.insert_or_assign(id, std::move(skill)).first->second;
}

std::optional<std::string> SkillStore::forget(const std::string& id) {
  if (skills_.erase(id) == 0) return std::nullopt;
  return folder_ + "/" + id;
}

std::string SkillStore::folder_of(const Skill& skill) const {
  return folder_ + "/" + skill.id + "/" + std::to_string(skill.latest_version);
}

}  // namespace belljar::server
