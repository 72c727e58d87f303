// SkillStore: skills on disk, one folder each with one folder for each version:
//
//   DIR/skill_ID/about.json    name, description, whose it is, which versions
//   DIR/skill_ID/VERSION/...   the files
//
// The folders are the operator's. A guest sees a version read-only.
#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "server/skill_archive.h"
#include "server/tokens.h"

namespace belljar::server {

struct Skill {
  std::string id;
  std::string name;
  std::string description;
  std::string owner;
  bool shared = false;  // an administrator made it: everybody may use it
  std::int64_t created_at = 0;
  std::uint64_t latest_version = 0;
  std::vector<std::uint64_t> versions;
  std::uint64_t bytes = 0;  // that all its versions take

  boost::json::object to_json() const;
};

class SkillStore {
 public:
  // What is there already is read; what is no skill is left alone.
  static Result<SkillStore> open(std::string folder);

  std::vector<const Skill*> all(const Principal& principal) const;
  // By id or by name: its own, one of NAME@TOKEN, or else the one that is everybody's. nullptr:
  // none that this principal may use.
  const Skill* find(const std::string& called, const Principal& principal) const;
  // The same without what is everybody's: nobody changes another's who does not say whose it is.
  const Skill* find_exactly(const std::string& called, const Principal& principal) const;
  bool may_change(const Skill& skill, const Principal& principal) const;
  // The principal's own of that name; nullptr: none.
  const Skill* own(const std::string& name, const Principal& principal) const;

  // Where the next version of a skill, or the first of a new one, is to be written.
  struct Place {
    std::string id;
    std::uint64_t version;
    std::string folder;  // inside it
  };
  Result<Place> place_for(const Skill* skill, const SkillFiles& files, const Principal& by) const;
  // The skill as it will be with that version.
  Skill with(const Place& place, const SkillFiles& files, const Principal& owner) const;
  // File work: not on the loop. What did not come to its end is not there.
  static Status write_version(const Place& place, const SkillFiles& files, const Skill& skill);
  // After it was written.
  const Skill& add(Skill skill);
  // Where its files are, for who removes them; nullopt: there is none.
  std::optional<std::string> forget(const std::string& id);
  std::string folder_of(const Skill& skill) const;

 private:
  explicit SkillStore(std::string folder) : folder_(std::move(folder)) {}
  Status check_room(const Skill* skill, const SkillFiles& files, const Principal& by) const;

  std::string folder_;
  std::map<std::string, Skill> skills_;
};

inline constexpr std::size_t kMaxSkills = 1'000;
inline constexpr std::size_t kMaxSkillsOfOne = 250;  // token that is no administrator's
inline constexpr std::size_t kMaxVersions = 100;     // of one skill
// That all versions of all skills of such a token take on the disk.
inline constexpr std::uint64_t kMaxSkillBytesOfOne = std::uint64_t{1} << 30;

}  // namespace belljar::server
