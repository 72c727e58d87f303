#include "policy/profiles.h"

#include <algorithm>
#include <array>

#include "policy/keys.h"
#include "policy/net_rule.h"

namespace belljar {
namespace {

using enum Need;

constexpr std::array kNeedsOpen = {unasked, unasked,     unasked,    best_effort,
                                   unasked, best_effort, best_effort};
constexpr std::array kNeedsDeveloper = {required, required,    required,   best_effort,
                                        required, best_effort, best_effort};
constexpr std::array kNeedsAll = {required, required, required, required,
                                  required, required, required};

const Limits kLimits{.memory_mb = 2048,
                     .cpu_secs = 600,
                     .procs = 64,
                     .open_fds = 1024,
                     .file_sz_mb = 256,
                     .timeout = {}};

const std::vector<std::string> kBasicVariables = {
    "PATH", "LANG",   "LC_ALL",         "LC_CTYPE",         "TERM",
    "HOME", "TMPDIR", "PYTHONHASHSEED", "PYTHONIOENCODING", "PYTHONUNBUFFERED"};

// Where toolchains and certificates are: locations, never secrets.
const std::vector<std::string> kToolchainVariables = {"CONDA_PREFIX",
                                                      "CONDA_DEFAULT_ENV",
                                                      "VIRTUAL_ENV",
                                                      "PYENV_ROOT",
                                                      "PYENV_VERSION",
                                                      "NVM_DIR",
                                                      "NVM_BIN",
                                                      "FNM_DIR",
                                                      "VOLTA_HOME",
                                                      "N_PREFIX",
                                                      "RUSTUP_HOME",
                                                      "RUSTUP_TOOLCHAIN",
                                                      "CARGO_HOME",
                                                      "GOROOT",
                                                      "GOPATH",
                                                      "GOBIN",
                                                      "GOTOOLCHAIN",
                                                      "JAVA_HOME",
                                                      "SDKMAN_DIR",
                                                      "MAVEN_HOME",
                                                      "M2_HOME",
                                                      "GRADLE_HOME",
                                                      "BUN_INSTALL",
                                                      "DENO_INSTALL",
                                                      "DENO_DIR",
                                                      "HOMEBREW_PREFIX",
                                                      "HOMEBREW_CELLAR",
                                                      "HOMEBREW_REPOSITORY",
                                                      "NIX_PATH",
                                                      "NIX_PROFILES",
                                                      "ASDF_DIR",
                                                      "ASDF_DATA_DIR",
                                                      "MISE_DATA_DIR",
                                                      "UV_PYTHON_INSTALL_DIR",
                                                      "PIPX_HOME",
                                                      "CC",
                                                      "CXX",
                                                      "LD",
                                                      "CPATH",
                                                      "C_INCLUDE_PATH",
                                                      "CPLUS_INCLUDE_PATH",
                                                      "LIBRARY_PATH",
                                                      "LD_LIBRARY_PATH",
                                                      "PKG_CONFIG_PATH",
                                                      "CMAKE_PREFIX_PATH",
                                                      "MANPATH",
                                                      "PYTHONPATH",
                                                      "SSL_CERT_FILE",
                                                      "SSL_CERT_DIR",
                                                      "CURL_CA_BUNDLE",
                                                      "REQUESTS_CA_BUNDLE",
                                                      "PIP_CERT",
                                                      "NODE_EXTRA_CA_CERTS",
                                                      "GIT_SSL_CAINFO",
                                                      "NIX_SSL_CERT_FILE",
                                                      "LC_*",
                                                      "LANGUAGE",
                                                      "TZ",
                                                      "COLORTERM",
                                                      "NO_COLOR"};

std::vector<std::string> developer_variables() {
  std::vector<std::string> all = kBasicVariables;
  all.insert(all.end(), kToolchainVariables.begin(), kToolchainVariables.end());
  return all;
}

Grant hidden(const char* path) { return {path, Access::hide, "profile"}; }

const Profile kProfiles[] = {
    {"open",
     "the base for --deny-* and --allow-*: only what is denied is denied",
     {.profile = "open",
      .needs = kNeedsOpen,
      .files = {.reads = Reads::everything,
                .writes_everything = true,
                .other_homes = true,
                .services = true,
                .home = Home::caller,
                .private_tmp = false},
      .network = Network::full,
      .environment = {.everything = true},
      .syscalls = Syscalls::deny_list}},
    {"developer",
     "local agents, package managers, your own tools on unknown code",
     {.profile = "developer",
      .needs = kNeedsDeveloper,
      .files = {.reads = Reads::system, .toolchains = true},
      .network = Network::full,
      .environment = {.pass = developer_variables()},
      .limits = kLimits,
      .syscalls = Syscalls::deny_list}},
    {"restricted",
     "production-like, prompts from people you do not know",
     {.profile = "restricted",
      .needs = kNeedsAll,
      .files = {.reads = Reads::system},
      .network = Network::loopback,
      .environment = {.pass = kBasicVariables},
      .limits = kLimits,
      .syscalls = Syscalls::allow_list}},
    {"public-bot",
     "hostile input: nothing of the host but programs and libraries",
     {.profile = "public-bot",
      .needs = kNeedsAll,
      .files = {.reads = Reads::runtime,
                .workdir_inside = "/workspace",
                .home_inside = "/home/sandbox"},
      .network = Network::none,
      .environment = {.pass = {"PATH", "LANG", "TERM"}, .system_path_only = true},
      .limits = kLimits,
      .syscalls = Syscalls::allow_list}},
    {"trusted-maintenance",
     "CI and maintenance with input you trust: damage is contained",
     {.profile = "trusted-maintenance",
      .needs = kNeedsDeveloper,
      .files = {.reads = Reads::everything,
                .grants = {hidden("/etc/shadow"), hidden("/etc/shadow-"), hidden("/etc/gshadow"),
                           hidden("/etc/gshadow-"), hidden("/root")}},
      .network = Network::full,
      .environment = {.pass = {"PATH", "HOME", "TMPDIR", "LANG", "TERM"}, .system_path_only = true},
      .limits = kLimits,
      .syscalls = Syscalls::deny_list}},
};

// With the environment denied these still pass, or programs cannot start.
const std::vector<std::string> kEssentialVariables = {"PATH",  "HOME", "USER",
                                                      "SHELL", "TERM", "LANG"};

void add_grants(Files& files, const std::vector<std::string>& paths, Access access,
                const char* from) {
  for (const std::string& path : paths) files.grants.push_back({path, access, from});
}

bool is_glob(std::string_view path) { return path.find_first_of("*?[") != path.npos; }

void apply_exceptions(Files& files, const Settings& settings) {
  for (const std::string& path : settings.hide) {
    if (is_glob(path))
      files.hide_globs.push_back(path);
    else
      files.grants.push_back({path, Access::hide, "hide"});
  }
  for (const std::string& path : settings.protect) {
    if (is_glob(path))
      files.protect_globs.push_back(path);
    else
      files.grants.push_back({path, Access::protect, "protect"});
  }
}

void deny_reads(Policy& policy) {
  Files& files = policy.files;
  // Tools stay usable where they were; a deny must not add them to a profile.
  if (files.reads == Reads::everything) {
    files.reads = Reads::system;
    files.toolchains = true;
  }
  files.workdir_access = Access::hide;
  policy.set_need(Promise::files, required);
}

void deny_writes(Policy& policy) {
  policy.files.writes_everything = false;
  if (policy.files.workdir_access == Access::write) policy.files.workdir_access = Access::read;
  policy.files.private_tmp = true;
  policy.files.services = false;  // a daemon would write for the guest
  policy.set_need(Promise::files, required);
}

// Denies and allows. Over `open` an allow implies a deny of the rest.
void apply_files(Policy& policy, const Settings& s, bool open) {
  Files& files = policy.files;
  const bool deny_read = s.deny_all || s.deny_read || (open && !s.allow_read.empty());
  const bool deny_write = s.deny_all || s.deny_write || (open && !s.allow_write.empty());
  if (deny_read) deny_reads(policy);
  if (deny_write) deny_writes(policy);
  // Where writing is not denied, what may be read may be written too.
  add_grants(files, s.allow_read, open && !deny_write ? Access::write : Access::read, "allow_read");
  add_grants(files, s.allow_write, Access::write, "allow_write");
  add_grants(files, s.extra_fs_read, Access::read, "extra_fs_read");
  add_grants(files, s.extra_fs_write, Access::write, "extra_fs_write");
  apply_exceptions(files, s);
  if (!s.hide.empty() || !s.protect.empty()) policy.set_need(Promise::exceptions, required);
}

// Hosts that are named narrow every other mode, `full` too: who names some means those.
Status apply_network(Policy& policy, const Settings& s) {
  if (s.network == "none") policy.network = Network::none;
  if (s.network == "loopback") policy.network = Network::loopback;
  if (s.network == "full") policy.network = Network::full;
  if (s.deny_all || s.deny_net) policy.network = Network::none;
  if (!s.allow_net.empty()) {
    policy.network = Network::hosts;
    policy.hosts = s.allow_net;
  }
  policy.deny_hosts = s.deny_net_hosts;
  for (const std::string& pair : s.publish) policy.publish.push_back(TRY(parse_published(pair)));
  // Only the broker can lead to a port of the guest's; it then allows nothing.
  if (policy.network == Network::loopback && !policy.publish.empty())
    policy.network = Network::hosts;
  if (policy.network == Network::full) return {};
  policy.files.services = false;  // a daemon would connect for the guest
  policy.set_need(Promise::network, required);
  return {};
}

void apply_environment(Policy& policy, const Settings& s, bool open) {
  Environment& env = policy.environment;
  if (s.deny_all || s.deny_env || (open && !s.allow_env.empty())) {
    // A deny tightens: of a profile's own list it leaves what is essential.
    if (std::exchange(env.everything, false)) env.pass = kEssentialVariables;
    std::erase_if(env.pass, [](const std::string& variable) {
      return std::ranges::find(kEssentialVariables, variable) == kEssentialVariables.end();
    });
    policy.set_need(Promise::environment, required);
  }
  env.pass.insert(env.pass.end(), s.allow_env.begin(), s.allow_env.end());
  env.pass.insert(env.pass.end(), s.extra_env.begin(), s.extra_env.end());
  for (const std::string& assignment : s.env) {
    std::size_t equals = assignment.find('=');
    env.set.emplace_back(assignment.substr(0, equals), assignment.substr(equals + 1));
  }
}

void apply_limits(Policy& policy, const Settings& s) {
  Limits& limits = policy.limits;
  auto apply = [](std::optional<std::uint64_t>& to, const std::optional<Limit>& from) {
    if (from) to = from->value;
  };
  apply(limits.memory_mb, s.max_memory_mb);
  apply(limits.cpu_secs, s.max_cpu_secs);
  apply(limits.procs, s.max_procs);
  apply(limits.open_fds, s.max_open_fds);
  apply(limits.file_sz_mb, s.max_file_sz_mb);
  if (s.timeout && s.timeout->value) limits.timeout = std::chrono::milliseconds(*s.timeout->value);
  for (const auto* asked :
       {&s.max_memory_mb, &s.max_cpu_secs, &s.max_procs, &s.max_open_fds, &s.max_file_sz_mb})
    if (*asked && (*asked)->value && policy.need(Promise::limits) == unasked)
      policy.set_need(Promise::limits, best_effort);
}

Status apply_places(Policy& policy, const Settings& s, const Surroundings& around) {
  Files& files = policy.files;
  files.workdir = s.workdir.value_or(around.cwd);
  files.start_in = s.start_in.value_or("");
  if (s.home) {
    files.home_dir = *s.home;
    files.home = Home::temporary;
  }
  if (s.cache) files.cache_dir = *s.cache;
  if (s.tmp) {
    files.private_tmp = *s.tmp == "private";
    files.tmp_dir = files.private_tmp ? "" : *s.tmp;
  }
  if (!s.credential.empty() && policy.profile == "public-bot")
    return fail("credential: the public-bot profile takes no credentials", 0,
                "use trusted-maintenance, and only with input you trust");
  for (const std::string& mount : s.credential) {
    std::size_t colon = mount.find(':');
    files.credentials.push_back({mount.substr(0, colon), mount.substr(colon + 1)});
  }
  return {};
}

void apply_mode(Policy& policy, const Settings& s) {
  if (s.mode == "on") policy.mode = Mode::on;
  if (s.mode == "full") policy.mode = Mode::full;
  if (s.mode == "off") policy.mode = Mode::off;
  if (policy.mode >= Mode::on)
    for (Need& need : policy.needs)
      if (need == best_effort) need = required;
  for (const std::string& accepted : s.accept_degraded)
    for (std::size_t i = 0; i < kPromiseCount; ++i)
      if (name(static_cast<Promise>(i)) == accepted)
        policy.accepted.push_back(static_cast<Promise>(i));
}

}  // namespace

std::span<const Profile> profiles() { return kProfiles; }

const Profile* find_profile(std::string_view name) {
  auto at = std::ranges::find(kProfiles, name, &Profile::name);
  return at == std::end(kProfiles) ? nullptr : at;
}

namespace {

std::string which_profile(std::string_view wrong) {
  std::vector<std::string_view> names;
  for (const Profile& profile : profiles()) names.push_back(profile.name);
  const std::string_view near = nearest(wrong, names);
  const std::string list = "belljar profile list";
  return near.empty() ? list : "did you mean " + std::string(near) + "? " + list;
}

}  // namespace

Result<Policy> make_policy(const Settings& settings, const Surroundings& around) {
  const bool named = settings.profile.has_value();
  const std::string wanted = named                         ? *settings.profile
                             : settings.denies_or_allows() ? "open"
                                                           : kDefaultProfile;
  const Profile* profile = find_profile(wanted);
  if (profile == nullptr)
    return fail("profile: there is no \"" + wanted + "\"", 0, which_profile(wanted));
  Policy policy = profile->policy;
  const bool open = wanted == "open";
  apply_files(policy, settings, open);
  TRY(apply_network(policy, settings));
  apply_environment(policy, settings, open);
  apply_limits(policy, settings);
  TRY(apply_places(policy, settings, around));
  apply_mode(policy, settings);
  return policy;
}

std::string_view name(Promise promise) {
  constexpr std::string_view kNames[kPromiseCount] = {
      "files", "exceptions", "network", "processes", "environment", "limits", "syscalls"};
  return kNames[static_cast<std::size_t>(promise)];
}

std::string_view name(Mode mode) {
  constexpr std::string_view kNames[] = {"off", "auto", "on", "full"};
  return kNames[static_cast<std::size_t>(mode)];
}

std::string_view name(Network network) {
  switch (network) {
    case Network::none:
      return "none";
    case Network::loopback:
      return "loopback";
    case Network::full:
      return "full";
    case Network::hosts:
      return "hosts";
  }
  return "?";
}

std::string_view name(Access access) {
  switch (access) {
    case Access::read:
      return "read";
    case Access::write:
      return "write";
    case Access::hide:
      return "hide";
    case Access::protect:
      return "protect";
  }
  return "?";
}

}  // namespace belljar
