#include "policy/keys.h"

#include <algorithm>
#include <charconv>

#include "base/commas.h"
#include "policy/net_rule.h"

namespace belljar {
namespace {

constexpr std::string_view kModes[] = {"auto", "on", "full", "off"};
constexpr std::string_view kNetworks[] = {"none", "loopback", "full"};
constexpr std::string_view kPromises[] = {"files",       "exceptions", "network", "processes",
                                          "environment", "limits",     "syscalls"};

constexpr Key kKeys[] = {
    {"mode", "sandbox", 0, Kind::choice, &Settings::mode, true, "MODE",
     "auto: every layer this host has; on: refuse if a promise cannot be kept; full: refuse if a "
     "layer is missing; off: no sandbox",
     kModes},
    {"profile", "profile", 0, Kind::name, &Settings::profile, true, "NAME",
     "start from open, developer, restricted, public-bot, trusted-maintenance or one of your own"},
    {"network", "network", 0, Kind::choice, &Settings::network, true, "MODE",
     "none: no sockets but AF_UNIX; loopback: an own loopback; full: the host's network, unless "
     "allow_net names hosts",
     kNetworks},
    {"deny_all", "deny-all", 0, Kind::flag, &Settings::deny_all, false, "",
     "deny reads, writes, network and environment"},
    {"deny_read", "deny-read", 0, Kind::flag, &Settings::deny_read, false, "",
     "deny reading files; programs and system files stay readable"},
    {"deny_write", "deny-write", 0, Kind::flag, &Settings::deny_write, false, "",
     "deny writing files; /tmp is private and writable"},
    {"deny_net", "deny-net", 0, Kind::flag, &Settings::deny_net, false, "", "deny all network"},
    {"deny_env", "deny-env", 0, Kind::flag, &Settings::deny_env, false, "",
     "pass only PATH, HOME, USER, SHELL, TERM and LANG"},
    {"allow_read", "allow-read", 0, Kind::paths, &Settings::allow_read, true, "PATH",
     "allow reading PATH and what is below it"},
    {"allow_write", "allow-write", 0, Kind::paths, &Settings::allow_write, true, "PATH",
     "allow reading and writing PATH; made as a folder if it is missing"},
    {"allow_net", "allow-net", 0, Kind::hosts, &Settings::allow_net, true, "HOST",
     "allow connections to HOST[:PORT[-PORT]] only; no port: 80 and 443 of a name, any of an "
     "address"},
    {"deny_net_hosts", "deny-net-hosts", 0, Kind::hosts, &Settings::deny_net_hosts, false, "HOST",
     "of what allow_net allows, deny HOST[:PORT[-PORT]]; no port: all of them"},
    {"publish", "publish", 0, Kind::ports, &Settings::publish, true, "HOSTPORT:PORT",
     "let the host reach the guest's PORT at 127.0.0.1:HOSTPORT"},
    {"allow_env", "allow-env", 0, Kind::names, &Settings::allow_env, true, "NAME",
     "pass the variable NAME; * matches any run of characters"},
    {"extra_fs_read", "extra-read", 0, Kind::paths, &Settings::extra_fs_read, true, "PATH",
     "also allow reading PATH"},
    {"extra_fs_write", "extra-write", 0, Kind::paths, &Settings::extra_fs_write, true, "PATH",
     "also allow reading and writing PATH; made as a folder if it is missing"},
    {"extra_env", "extra-env", 0, Kind::names, &Settings::extra_env, true, "NAME",
     "also pass the variable NAME"},
    {"hide", "hide", 0, Kind::globs, &Settings::hide, false, "PATH",
     "make PATH unreadable inside a readable folder; * ? [ ] and ** match"},
    {"protect", "protect", 0, Kind::globs, &Settings::protect, false, "PATH",
     "make PATH unchangeable inside a writable folder; * ? [ ] and ** match"},
    {"max_memory_mb", "max-memory-mb", 0, Kind::count, &Settings::max_memory_mb, false, "MB",
     "memory of all processes together, or unlimited"},
    {"max_cpu_secs", "max-cpu-secs", 0, Kind::count, &Settings::max_cpu_secs, false, "SECONDS",
     "CPU time, or unlimited"},
    {"max_procs", "max-procs", 0, Kind::count, &Settings::max_procs, false, "N",
     "processes and threads, or unlimited"},
    {"max_open_fds",
     "max-open-fds",
     0,
     Kind::count,
     &Settings::max_open_fds,
     false,
     "N",
     "open files of each process, or unlimited",
     {},
     16},
    {"max_file_sz_mb", "max-file-sz-mb", 0, Kind::count, &Settings::max_file_sz_mb, false, "MB",
     "size of each written file, or unlimited"},
    {"timeout", "timeout", 0, Kind::duration, &Settings::timeout, false, "TIME",
     "end the command after TIME: seconds, or 500ms, 2m, 1h, unlimited"},
    {"env", "env", 0, Kind::assignments, &Settings::env, true, "NAME=VALUE",
     "set a variable inside"},
    {"workdir", "workdir", 'C', Kind::path, &Settings::workdir, true, "DIR",
     "work in DIR instead of the current folder"},
    {"start_in", "start-in", 0, Kind::path, &Settings::start_in, false, "DIR",
     "start a command in DIR, which must be shown; what may be written stays the workdir"},
    {"home", "home", 0, Kind::path, &Settings::home, true, "DIR",
     "use DIR as the home folder instead of an empty one; what else is shown in your home gets an "
     "empty mount point there"},
    {"cache", "cache", 0, Kind::path, &Settings::cache, true, "DIR",
     "a writable folder for caches, named by XDG_CACHE_HOME"},
    {"tmp", "tmp", 0, Kind::tmp, &Settings::tmp, true, "private|DIR",
     "what /tmp is: private and in memory, or DIR (with mount points, as for --home)"},
    {"credential", "credential", 0, Kind::mounts, &Settings::credential, true, "SRC:DEST",
     "show the file or folder SRC read-only at DEST"},
    {"accept_degraded", "accept-degraded", 0, Kind::promises, &Settings::accept_degraded, true,
     "PROMISE", "run although this host cannot keep PROMISE", kPromises},
};

Result<std::uint64_t> parse_number(std::string_view text, std::string_view what) {
  std::uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty())
    return fail(std::string(what) + ": not a number: \"" + std::string(text) + "\"", 0,
                "a whole number, or unlimited");
  return value;
}

Result<Limit> parse_count(std::string_view text, std::string_view name, std::uint64_t least) {
  if (text == "unlimited") return Limit{};
  std::uint64_t value = TRY(parse_number(text, name));
  // Larger ones could not be multiplied into bytes or milliseconds.
  constexpr std::uint64_t kMax = std::uint64_t{1} << 40;
  if (value < least || value > kMax)
    return fail(std::string(name) + ": must be between " + std::to_string(least) + " and " +
                    std::to_string(kMax),
                0, "unlimited removes the limit");
  return Limit{value};
}

Result<Limit> parse_duration(std::string_view text, std::string_view name, std::uint64_t least) {
  if (text == "unlimited") return Limit{};
  std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  std::string_view unit = text.substr(digits);
  std::uint64_t factor = 0;
  if (unit.empty() || unit == "s") factor = 1000;
  if (unit == "ms") factor = 1;
  if (unit == "m") factor = 60'000;
  if (unit == "h") factor = 3'600'000;
  if (digits == 0 || factor == 0)
    return fail(std::string(name) + ": not a time: \"" + std::string(text) + "\"", 0,
                "seconds, or 500ms, 2m, 1h, unlimited");
  Limit limit = TRY(parse_count(text.substr(0, digits), name, least));
  *limit.value *= factor;
  return limit;
}

// Which groups there are is not known before all sources are.
Status check_host(std::string_view text) {
  if (!is_group(text)) {
    TRY(parse_net_rule(text));
    return {};
  }
  if (is_group_name(text.substr(1))) return {};
  return fail("\"" + std::string(text) + "\" cannot be the name of a group");
}

Result<std::string> parse_text(const Key& key, std::string_view text, const Origin& origin) {
  const std::string name(key.name);
  if (text.find('\0') != std::string_view::npos) return fail(name + ": holds a NUL byte");
  if (text.empty()) return fail(name + ": is empty", 0, "leave it out instead");
  if (!key.choices.empty() && std::ranges::find(key.choices, text) == key.choices.end())
    return fail(name + ": \"" + std::string(text) + "\" is not one of " + with_commas(key.choices));
  switch (key.kind) {
    case Kind::path:
    case Kind::paths:
    case Kind::globs:
      return absolute_path(text, origin);
    case Kind::tmp:
      return text == "private" ? std::string(text) : absolute_path(text, origin);
    case Kind::assignments:
      if (text.find('=') == std::string_view::npos || text.starts_with('='))
        return fail(name + ": \"" + std::string(text) + "\" is not NAME=VALUE");
      return std::string(text);
    case Kind::hosts:
      if (Status status = check_host(text); !status)
        return fail(name + ": " + status.error().what, 0, status.error().hint);
      return std::string(text);
    case Kind::ports:
      if (Result<Published> pair = parse_published(text); !pair)
        return fail(name + ": " + pair.error().what, 0, pair.error().hint);
      return std::string(text);
    case Kind::mounts: {
      std::size_t colon = text.find(':');
      if (colon == std::string_view::npos || colon == 0 || colon + 1 == text.size())
        return fail(name + ": \"" + std::string(text) + "\" is not SRC:DEST");
      return absolute_path(text.substr(0, colon), origin) + ":" +
             absolute_path(text.substr(colon + 1), origin);
    }
    default:
      return std::string(text);
  }
}

// Edits to get from one to the other: insertions, deletions, replacements.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0U : 1U)});
      diagonal = above;
    }
  }
  return row.back();
}

}  // namespace

std::span<const Key> keys() { return kKeys; }

const Key* find_key(std::string_view name) {
  auto at = std::ranges::find(kKeys, name, &Key::name);
  return at == std::end(kKeys) ? nullptr : at;
}

const Key* find_flag(std::string_view flag) {
  auto at = std::ranges::find(kKeys, flag, &Key::flag);
  return at == std::end(kKeys) ? nullptr : at;
}

std::string_view nearest(std::string_view wrong, std::span<const std::string_view> names) {
  std::string_view best;
  std::size_t best_distance = wrong.size() / 3 + 2;
  for (std::string_view name : names) {
    // Already too far by length alone: what a stranger's file holds may be huge.
    if (std::max(wrong.size(), name.size()) - std::min(wrong.size(), name.size()) >= best_distance)
      continue;
    std::size_t d = distance(wrong, name);
    if (d < best_distance) {
      best = name;
      best_distance = d;
    }
  }
  return best;
}

std::string absolute_path(std::string_view text, const Origin& origin) {
  if (text == "~") return origin.home;
  if (text.starts_with("~/")) return origin.home + std::string(text.substr(1));
  if (text.starts_with('/')) return std::string(text);
  if (text == ".") return origin.folder;
  if (text.starts_with("./")) text.remove_prefix(2);
  return origin.folder + (origin.folder.ends_with('/') ? "" : "/") + std::string(text);
}

Result<Limit> parse_limit(std::string_view text, std::string_view name, Kind kind,
                          std::uint64_t least) {
  return kind == Kind::duration ? parse_duration(text, name, least)
                                : parse_count(text, name, least);
}

Status set(Settings& settings, const Key& key, std::string_view text, const Origin& origin) {
  if (const auto* flag = std::get_if<bool Settings::*>(&key.target)) {
    if (text != "true" && text != "false")
      return fail(std::string(key.name) + ": \"" + std::string(text) + "\" is not true or false");
    settings.*(*flag) = text == "true";
    return {};
  }
  if (const auto* limit = std::get_if<std::optional<Limit> Settings::*>(&key.target)) {
    settings.*(*limit) = TRY(parse_limit(text, key.name, key.kind, key.least));
    return {};
  }
  std::string value = TRY(parse_text(key, text, origin));
  if (const auto* one = std::get_if<std::optional<std::string> Settings::*>(&key.target))
    settings.*(*one) = std::move(value);
  else
    (settings.*std::get<std::vector<std::string> Settings::*>(key.target))
        .push_back(std::move(value));
  return {};
}

bool Settings::denies_or_allows() const {
  return deny_all || deny_read || deny_write || deny_net || deny_env || !allow_read.empty() ||
         !allow_write.empty() || !allow_net.empty() || !allow_env.empty() ||
         !deny_net_hosts.empty();
}

Settings merge(Settings under, const Settings& over) {
  for (const Key& key : kKeys)
    std::visit(
        [&](auto member) {
          auto& to = under.*member;
          const auto& from = over.*member;
          using T = std::remove_cvref_t<decltype(to)>;
          if constexpr (std::is_same_v<T, bool>)
            to = to || from;
          else if constexpr (std::is_same_v<T, std::vector<std::string>>)
            to.insert(to.end(), from.begin(), from.end());
          else if (from)
            to = from;
        },
        key.target);
  return under;
}

}  // namespace belljar
