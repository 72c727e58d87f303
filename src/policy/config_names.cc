#include "policy/config_names.h"

#include <algorithm>

#include "policy/tasks.h"
#include "policy/toml_hints.h"

namespace belljar {
namespace {

// Nobody extends so many; a circle further on is found by it too.
constexpr std::size_t kMaxChain = 32;

template <class Map>
std::vector<std::string_view> names_of(const Map& map) {
  std::vector<std::string_view> names;
  for (const auto& [name, value] : map) names.push_back(name);
  return names;
}

class Checker {
 public:
  Checker(const Config& config, const ConfigSource& source) : config_(config), source_(source) {}

  Status check_groups() const {
    NetGroups all = net_groups(config_);
    all.merge(NetGroups(source_.known_groups));
    for (const auto& [name, group] : config_.net_groups)
      if (Result<std::vector<std::string>> rules = expand_groups({"@" + name}, all); !rules)
        return wrong(group.position, rules.error().what, rules.error().hint);
    TRY(check_groups_of(config_.sandbox, all));
    for (const auto& [name, profile] : config_.profiles) TRY(check_groups_of(profile.section, all));
    for (const auto& [name, task] : config_.tasks) TRY(check_groups_of(task.section, all));
    return {};
  }

  Status check_profiles() const {
    TRY(check_section(config_.sandbox));
    for (const auto& [name, task] : config_.tasks) TRY(check_section(task.section));
    for (const auto& [name, profile] : config_.profiles)
      TRY(check_profile_name(profile.position, profile.extends));
    for (const auto& [name, profile] : config_.profiles) TRY(check_chain(name, profile));
    return {};
  }

  Status check_tasks() const {
    for (const auto& [name, task] : config_.tasks)
      for (const std::string& other : task.depends)
        if (!config_.tasks.contains(other))
          return wrong(
              task.position,
              "task " + quoted(name) + " depends on " + quoted(other) + ", which is not there",
              did_you_mean(other, names_of(config_.tasks)));
    std::vector<std::string_view> all = names_of(config_.tasks);
    TRY(task_order(config_, all));
    return {};
  }

 private:
  std::unexpected<Error> wrong(Position position, std::string_view what,
                               const std::string& hint = {}) const {
    return std::unexpected(config_.error(position, what, hint));
  }

  Status check_groups_of(const Section& section, const NetGroups& all) const {
    const Settings& settings = section.settings;
    for (const auto& [key, rules] : {std::pair("allow_net", &settings.allow_net),
                                     std::pair("deny_net_hosts", &settings.deny_net_hosts)})
      if (Result<std::vector<std::string>> expanded = expand_groups(*rules, all); !expanded)
        return wrong(section.positions.at(key), std::string(key) + ": " + expanded.error().what,
                     expanded.error().hint);
    return {};
  }

  Status check_profile_name(Position position, const std::string& name) const {
    const bool elsewhere =
        std::ranges::find(source_.known_profiles, name) != source_.known_profiles.end();
    if (elsewhere || find_profile(name) != nullptr || config_.profiles.contains(name)) return {};
    std::vector<std::string_view> known = names_of(config_.profiles);
    for (const Profile& profile : profiles()) known.push_back(profile.name);
    for (const std::string& other : source_.known_profiles) known.push_back(other);
    return wrong(position, "there is no profile " + quoted(name),
                 did_you_mean(name, known, "belljar profile list"));
  }

  Status check_section(const Section& section) const {
    if (!section.settings.profile) return {};
    return check_profile_name(section.positions.at("profile"), *section.settings.profile);
  }

  Status check_chain(const std::string& name, const ProfileDefinition& profile) const {
    auto next = config_.profiles.find(profile.extends);
    for (std::size_t length = 1; next != config_.profiles.end(); ++length) {
      if (next->first == name)
        return wrong(profile.position, "profile " + quoted(name) + " extends itself");
      if (length > kMaxChain)
        return wrong(profile.position, "profile " + quoted(name) + " extends too many others");
      next = config_.profiles.find(next->second.extends);
    }
    return {};
  }

  const Config& config_;
  const ConfigSource& source_;
};

}  // namespace

Status check_names(const Config& config, const ConfigSource& source) {
  const Checker checker(config, source);
  TRY(checker.check_groups());
  TRY(checker.check_profiles());
  return checker.check_tasks();
}

}  // namespace belljar
