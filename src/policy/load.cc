#include "policy/load.h"

#include <algorithm>
#include <filesystem>
#include <ranges>
#include <tuple>

#include "policy/net_rule.h"
#include "policy/validate.h"
#include "policy/widening.h"

namespace belljar {
namespace {

// Of the settings, only this key.
Settings only(const Settings& settings, const Key& key) {
  Settings one;
  std::visit([&](auto member) { one.*member = settings.*member; }, key.target);
  return one;
}

// An allow implies a deny of the rest where no profile is named, as over `open`.
Settings with_implied_denies(Settings settings) {
  settings.deny_read = settings.deny_read || !settings.allow_read.empty();
  settings.deny_write = settings.deny_write || !settings.allow_write.empty();
  settings.deny_env = settings.deny_env || !settings.allow_env.empty();
  return settings;
}

// The variable is the weakest source of a mode. To ask for a deny or an allow is
// to ask for a sandbox, so `off` then does not count.
Status apply_mode_variable(Settings& settings, const std::string& variable) {
  if (settings.mode || variable.empty()) return {};
  Settings parsed;
  if (Status status = set(parsed, *find_key("mode"), variable, {}); !status)
    return fail("BELLJAR_SANDBOX" + status.error().what.substr(4));
  if (variable != "off" || !settings.denies_or_allows()) settings.mode = parsed.mode;
  return {};
}

bool holds(const std::filesystem::path& folder, const std::filesystem::path& path) {
  std::error_code error;
  const auto above = std::filesystem::weakly_canonical(folder, error);
  const auto below = std::filesystem::weakly_canonical(path, error);
  return std::ranges::mismatch(above, below).in1 == above.end();
}

class Loader {
 public:
  Loader(const ConfigFiles& files, const ConfigPlaces& places, const Settings& flags,
         const Task* task)
      : files_(files), places_(places), flags_(flags), task_(task) {
    // The readers of the files have refused names that are in both.
    if (files_.user) groups_ = net_groups(*files_.user);
    if (files_.project) groups_.merge(net_groups(files_.project->config));
  }

  Result<Loaded> load() {
    std::optional<Reach> bound;
    if (files_.project && !files_.project->trusted) {
      std::vector<Widening> refused = TRY(widenings());
      if (!refused.empty()) return std::unexpected(refusal(files_.project->config, refused));
      const Policy before = TRY(compose_without_project()).policy;
      if (before.mode != Mode::off) bound.emplace(before.files);
    }
    Loaded loaded = with_sources(TRY(compose(sandbox_settings(), task_settings(), flags_)));
    TRY(validate(loaded.policy));
    loaded.bound = std::move(bound);
    add_permissions(loaded);
    if (files_.user) loaded.session = session_settings(*files_.user, {}, places_.home);
    if (files_.project)
      loaded.session = session_settings(files_.project->config, loaded.session, places_.home);
    if (files_.user) loaded.server = server_settings(*files_.user, {}, places_.home);
    if (files_.project)
      loaded.server = server_settings(files_.project->config, loaded.server, places_.home);
    return loaded;
  }

  Result<std::vector<Widening>> widenings() {
    std::vector<Widening> found;
    if (!files_.project) return found;
    const Config& config = files_.project->config;
    // What the project wrote would stand for what the person named.
    for (const auto* rules : {&flags_.allow_net, &flags_.deny_net_hosts})
      for (const std::string& rule : *rules | std::views::filter(is_group))
        if (auto own = config.net_groups.find(rule.substr(1)); own != config.net_groups.end())
          found.push_back({own->second.position, "group " + rule, "chooses what it stands for"});
    if (!config.session.values.empty())
      found.push_back({config.session.position, "[session]", "chooses how sessions run"});
    if (!config.server.values.empty())
      found.push_back({config.server.position, "[server]", "chooses how a server runs"});
    if (!found.empty()) return found;
    const Policy before = TRY(compose_without_project()).policy;

    // A profile that the person named, but the project wrote.
    if (auto own = config.profiles.find(flags_.profile.value_or("")); own != config.profiles.end())
      if (auto why = widening(before, TRY(compose({}, {}, flags_)).policy))
        found.push_back({own->second.position, "profile \"" + own->first + "\"", *why});
    for (const auto& [name, position] : config.sandbox.positions) {
      Settings one = only(config.sandbox.settings, *find_key(name));
      if (auto why = widening(before, TRY(compose(one, {}, flags_)).policy))
        found.push_back({position, name, *why});
    }
    if (task_ != nullptr)
      for (const auto& [name, position] : task_->section.positions) {
        Settings one = only(task_->section.settings, *find_key(name));
        if (auto why = widening(before, TRY(compose({}, one, flags_)).policy))
          found.push_back({position, name, *why});
      }
    if (found.empty()) TRY(add_joint_widening(found, before));
    TRY(add_whole_home(found));
    std::ranges::sort(found, {}, [](const Widening& w) {
      return std::tuple(w.position.line, w.position.column);
    });
    return found;
  }

 private:
  void add_permissions(Loaded& loaded) const {
    if (files_.user && files_.user->permissions.permissions)
      loaded.permissions.push_back(*files_.user->permissions.permissions);
    if (!files_.project || !files_.project->config.permissions.permissions) return;
    const Permissions& own = *files_.project->config.permissions.permissions;
    if (files_.project->trusted && !loaded.permissions.empty())
      loaded.permissions.back() = overlay(std::move(loaded.permissions.back()), own);
    else
      loaded.permissions.push_back(own);
  }

  // Where a person would look for the rule: the flag, or the line of the file.
  Loaded with_sources(Loaded loaded) const {
    for (Grant& grant : loaded.policy.files.grants) {
      const Key* key = find_key(grant.from);
      if (key == nullptr) continue;
      if (asks(flags_, *key, grant.path)) {
        grant.from = "--" + std::string(key->flag);
        continue;
      }
      const std::string where = line_that_asks(*key, grant.path);
      if (!where.empty()) grant.from.append(" in ").append(where);
    }
    return loaded;
  }

  static bool asks(const Settings& settings, const Key& key, const std::string& path) {
    const auto* list = std::get_if<std::vector<std::string> Settings::*>(&key.target);
    return list != nullptr &&
           std::ranges::find(settings.*(*list), path) != (settings.*(*list)).end();
  }

  // `file:line`, of the highest source that has it.
  std::string line_that_asks(const Key& key, const std::string& path) const {
    std::string found;
    auto look = [&](const Config& config, const Section& section) {
      if (auto at = section.positions.find(key.name);
          found.empty() && at != section.positions.end() && asks(section.settings, key, path))
        found = config.file + ":" + std::to_string(at->second.line);
    };
    const Config* project = files_.project ? &files_.project->config : nullptr;
    const Config* user = files_.user ? &*files_.user : nullptr;
    if (project != nullptr && task_ != nullptr) look(*project, task_->section);
    for (const Config* config : {project, user})
      if (config != nullptr) look(*config, config->sandbox);
    for (const Config* config : {project, user})
      if (config != nullptr)
        for (const auto& [name, profile] : config->profiles) look(*config, profile.section);
    return found;
  }

  // No key widens alone; together they must not either.
  Status add_joint_widening(std::vector<Widening>& found, const Policy& before) {
    const Config& config = files_.project->config;
    auto why =
        widening(before, TRY(compose(config.sandbox.settings, task_settings(), flags_)).policy);
    if (why) found.push_back({{1, 1}, "the keys of this file together", *why});
    return {};
  }

  // Started there by a person without -C, belljar refuses a workdir that holds the
  // home. A project must not be what overrules that.
  Status add_whole_home(std::vector<Widening>& found) {
    const Config& config = files_.project->config;
    const bool in_sandbox = config.sandbox.settings.workdir.has_value();
    if (flags_.workdir || (task_ == nullptr && !in_sandbox)) return {};
    const bool in_task = task_ != nullptr && (task_->section.settings.workdir || !in_sandbox);
    const Section* said = in_task ? &task_->section : &config.sandbox;
    const Policy policy = TRY(compose(config.sandbox.settings, task_settings(), flags_)).policy;
    if (policy.files.workdir_access != Access::write || !holds(policy.files.workdir, places_.home))
      return {};
    auto at = said->positions.find("workdir");
    found.push_back({at != said->positions.end() ? at->second : task_->position, "workdir",
                     "makes your whole home folder writable"});
    return {};
  }

  Settings sandbox_settings() const {
    return files_.project ? files_.project->config.sandbox.settings : Settings{};
  }
  Settings task_settings() const { return task_ != nullptr ? task_->section.settings : Settings{}; }

  // What would hold if there were no project here. A profile that the project wrote
  // would not be there either: then it is the person's usual one.
  Result<Loaded> compose_without_project() {
    Settings flags = flags_;
    if (files_.project->config.profiles.contains(flags.profile.value_or(""))) {
      flags.profile = kDefaultProfile;
      if (files_.user && files_.user->sandbox.settings.profile)
        flags.profile = files_.user->sandbox.settings.profile;
    }
    return compose({}, {}, flags);
  }

  Result<Loaded> compose(const Settings& sandbox, const Settings& task, const Settings& flags) {
    std::vector<Settings> sources = {files_.user ? files_.user->sandbox.settings : Settings{},
                                     sandbox, task, flags};
    hold_files_within_default(sources);
    Loaded loaded;
    for (const Settings& over : sources) loaded.settings = merge(std::move(loaded.settings), over);
    const std::optional<std::string> named = loaded.settings.profile;
    flatten_profile(loaded.settings);
    TRY(expand_all_groups(loaded.settings));
    TRY(apply_mode_variable(loaded.settings, places_.mode_variable));
    const std::string& cwd =
        task_ != nullptr && files_.project ? files_.project->config.folder : places_.cwd;
    loaded.policy = TRY(make_policy(loaded.settings, {.cwd = cwd, .home = places_.home}));
    if (named) loaded.policy.profile = *named;
    return loaded;
  }

  // Said as a flag, a deny without a profile means `open` less that. Said in a file
  // it must not, or a project could lead everyone out of the default profile by
  // denying something; there it means the default less that.
  static void hold_files_within_default(std::vector<Settings>& sources) {
    Settings& flags = sources.back();
    const bool named = std::ranges::any_of(
        sources, [](const Settings& source) { return source.profile.has_value(); });
    if (named || flags.denies_or_allows()) return;
    for (Settings& source : sources) source = with_implied_denies(std::move(source));
    flags.profile = kDefaultProfile;
  }

  const ProfileDefinition* find_own_profile(const std::string& name) const {
    for (const Config* config : {files_.user ? &*files_.user : nullptr,
                                 files_.project ? &files_.project->config : nullptr})
      if (config != nullptr)
        if (auto found = config->profiles.find(name); found != config->profiles.end())
          return &found->second;
    return nullptr;
  }

  // A person's own profile: its settings and those it extends, under the others',
  // over the built-in profile at the end. The files' readers have refused circles.
  void flatten_profile(Settings& settings) const {
    if (!settings.profile) return;
    std::vector<const ProfileDefinition*> chain;
    std::string name = *settings.profile;
    while (const ProfileDefinition* own = find_own_profile(name)) {
      chain.push_back(own);
      name = own->extends;
    }
    Settings under;
    for (const ProfileDefinition* own : std::views::reverse(chain))
      under = merge(std::move(under), own->section.settings);
    settings = merge(std::move(under), settings);
    settings.profile = name;
  }

  Status expand_all_groups(Settings& settings) const {
    for (auto [key, rules] : {std::pair("allow_net: ", &settings.allow_net),
                              std::pair("deny_net_hosts: ", &settings.deny_net_hosts)}) {
      Result<std::vector<std::string>> expanded = expand_groups(*rules, groups_);
      if (!expanded) return fail(key + expanded.error().what, 0, expanded.error().hint);
      *rules = *std::move(expanded);
    }
    return {};
  }

  static Error refusal(const Config& config, const std::vector<Widening>& refused) {
    const Widening& first = refused.front();
    std::string others;
    for (const Widening& widening : refused | std::views::drop(1))
      others.append(others.empty() ? "; so would " : ", ").append(widening.what);
    return config.error(first.position,
                        first.what + " would widen the policy (" + first.why + ")" + others +
                            "; refused until you run `belljar trust`",
                        "read the file first; `belljar config check` lists what it asks for");
  }

  const ConfigFiles& files_;
  const ConfigPlaces& places_;
  const Settings& flags_;
  const Task* task_;
  NetGroups groups_;
};

}  // namespace

Result<Loaded> load(const ConfigFiles& files, const ConfigPlaces& places, const Settings& flags,
                    const Task* task) {
  return Loader(files, places, flags, task).load();
}

Result<std::vector<Widening>> widenings(const ConfigFiles& files, const ConfigPlaces& places,
                                        const Settings& flags, const Task* task) {
  return Loader(files, places, flags, task).widenings();
}

Result<std::vector<Widening>> all_widenings(const ConfigFiles& files, const ConfigPlaces& places) {
  std::vector<Widening> all = TRY(widenings(files, places, {}));
  if (!files.project) return all;
  auto add = [&](const std::vector<Widening>& more) {
    for (const Widening& widening : more)
      if (std::ranges::find(all, widening.position, &Widening::position) == all.end())
        all.push_back(widening);
  };
  for (const auto& [name, task] : files.project->config.tasks)
    add(TRY(widenings(files, places, {}, &task)));
  for (const auto& [name, profile] : files.project->config.profiles)
    add(TRY(widenings(files, places, {.profile = name})));
  std::ranges::sort(all, {}, [](const Widening& widening) {
    return std::tuple(widening.position.line, widening.position.column);
  });
  return all;
}

}  // namespace belljar
