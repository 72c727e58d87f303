// explain --why: which rule and layer decide about one path, host or variable.
#include <arpa/inet.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "plan/explain.h"
#include "plan/explain_network.h"
#include "plan/paths.h"
#include "plan/venv.h"

namespace belljar {
namespace {

bool exists(const std::string& path) {
  struct stat st{};
  return ::lstat(path.c_str(), &st) == 0;
}

std::string absolute(std::string_view text, const Caller& caller) {
  std::string path(text);
  if (path == "~" || path.starts_with("~/")) path = caller.home + path.substr(1);
  return path.starts_with('/') ? path : caller.cwd + "/" + path;
}

bool is_port(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

// The host that is meant, if it is no path: what exists is a path, whatever it looks like.
std::optional<std::string> host_in(std::string_view text, const Caller& caller) {
  if (std::size_t scheme = text.find("://"); scheme != text.npos && scheme > 0) {
    std::string_view rest = text.substr(scheme + 3);
    rest = rest.substr(0, rest.find_first_of("/?#"));
    if (std::size_t user = rest.rfind('@'); user != rest.npos) rest.remove_prefix(user + 1);
    return std::string(rest);
  }
  const bool path = text.empty() || text.starts_with('/') || text.starts_with('.') ||
                    text.starts_with('~') || text.find('/') != text.npos;
  if (path || exists(absolute(text, caller))) return std::nullopt;
  in6_addr ignored{};
  const std::size_t colon = text.rfind(':');
  const bool host = text == "localhost" || text.find('.') != text.npos || text.starts_with('[') ||
                    (colon != text.npos && colon > 0 && is_port(text.substr(colon + 1))) ||
                    ::inet_pton(AF_INET6, std::string(text).c_str(), &ignored) == 1;
  return host ? std::optional<std::string>(text) : std::nullopt;
}

// The deepest place that the guest sees at a path of its own, or above it.
const Place* seen_at(const Plan& plan, std::string_view inside) {
  const Place* seen = nullptr;
  for (const Place& place : plan.layout.places)
    if (is_below(inside, place.inside) &&
        (seen == nullptr || place.inside.size() >= seen->inside.size()))
      seen = &place;
  for (const PrivateDir& dir : plan.layout.private_dirs)
    if (seen != nullptr && is_below(inside, dir.inside) && dir.inside.size() > seen->inside.size())
      return nullptr;
  return seen;
}

// Whether a file's own mode lets the guest, who is never root. In a tree that root shows as the
// guest's own, what belongs to the tree's owner is the guest's, and what belongs to others can
// only be read (layers/idmap.h).
bool mode_allows(const Traced& traced, const Place* tree, bool writes) {
  if (::geteuid() != 0) return ::access(traced.path.c_str(), writes ? R_OK | W_OK : R_OK) == 0;
  const bool shown_as_own = tree != nullptr && tree->owned;
  if (shown_as_own && traced.st.st_uid == tree->st.st_uid) return true;  // it can change the mode
  if (shown_as_own && writes) return false;
  const mode_t wanted = writes ? 06U : 04U;
  return (traced.st.st_mode & wanted) == wanted;
}

constexpr std::string_view kAsFarAs = " as far as its own permissions allow";

// What a grant gives is not more than the file's own mode gives.
std::string_view permissions(const Traced& traced, const Place* rule, Access access) {
  const bool writes = access == Access::write;
  return mode_allows(traced, rule, writes) ? std::string_view() : kAsFarAs;
}

// The same of a grant that there could be: root's would show it as the guest's own.
std::string_view permissions_if_granted(const Traced& traced) {
  return ::geteuid() == 0 || mode_allows(traced, nullptr, true) ? std::string_view() : kAsFarAs;
}

// What the jar has of its own, and no grant can change.
std::optional<std::string> made_for_the_guest(const Plan& plan, const std::string& path) {
  if (!plan.view) return std::nullopt;
  if (is_below(path, "/proc") && !plan.outside_proc)
    return "the guest's own /proc, which shows the processes of the jar and no others; kept by "
           "the pid namespace.\n";
  if (is_below(path, "/proc"))
    return "the host's /proc is shown, since no new one can be mounted here (belljar doctor).\n";
  if (is_below(path, "/dev") && plan.layout.own_dev && seen_at(plan, path) == nullptr)
    return "not shown. The guest has a /dev of its own, with null, zero, full, random, urandom, "
           "tty, shm and pts.\n";
  return std::nullopt;
}

std::string file_layers(const Plan& plan) {
  if (!plan.view) return "Landlock";
  return plan.landlock ? "the view and Landlock" : "the view";
}

struct Asked {
  std::string path;              // on the host, with no symlink in it
  std::optional<Traced> traced;  // none: it does not exist
};

std::string why_granted(const Plan& plan, const Place* rule, const Asked& asked) {
  const std::string layers = file_layers(plan);
  const std::string& path = asked.path;
  const Access access = rule != nullptr             ? rule->access
                        : plan.layout.root_writable ? Access::write
                                                    : Access::read;
  const std::string from = rule != nullptr ? rule->path + " (" + rule->from + ")" : "/ (profile)";
  std::string allowed;
  std::string allowed_then;
  if (asked.traced) allowed = permissions(*asked.traced, rule, access);
  if (asked.traced) allowed_then = permissions_if_granted(*asked.traced);
  switch (access) {
    case Access::write:
      return "can be read and written" + allowed + ", by the grant of " + from +
             "; --hide=" + path + " or --protect=" + path + " would take it away.\n";
    case Access::read:
      return "can be read" + allowed + " and not written, by the grant of " + from + ", kept by " +
             layers + "; --extra-write=" + path + " would allow writing" + allowed_then +
             ", --hide=" + path + " would hide it.\n";
    case Access::hide:
      return "hidden by " + from + ", kept by the view; leave that rule out to show it.\n";
    case Access::protect:
      return "can be read" + allowed + " and not changed, protected by " + from +
             ", kept by the view; leave that rule out to allow changes.\n";
  }
  return {};
}

// The deepest rule about a path of the host, and what is above it if that is a private folder.
struct Rule {
  const Place* place = nullptr;
  const PrivateDir* covered_by = nullptr;
  bool shows(const Layout& layout) const {
    if (covered_by != nullptr) return false;
    return place != nullptr ? place->access != Access::hide : layout.whole_root;
  }
};

Rule rule_about(const Plan& plan, std::string_view path) {
  Rule rule;
  for (const Place& place : plan.layout.places)
    if (is_below(path, place.path) &&
        (rule.place == nullptr || place.path.size() >= rule.place->path.size()))
      rule.place = &place;
  for (const PrivateDir& dir : plan.layout.private_dirs)
    if (is_below(path, dir.inside) &&
        (rule.place == nullptr || dir.inside.size() > rule.place->inside.size()))
      rule.covered_by = &dir;
  return rule;
}

// The first symlink on the way to a path that the guest does not have, so that it gets nowhere by
// that name, whatever it may do with what the name leads to.
const Link* missing_link(const Plan& plan, const Traced& traced) {
  for (const Link& link : traced.links) {
    const bool made =
        made_for_the_guest(plan, link.inside) ||
        std::ranges::find(plan.layout.links, link.inside, &Link::inside) != plan.layout.links.end();
    if (!made && !rule_about(plan, link.inside).shows(plan.layout)) return &link;
  }
  return nullptr;
}

std::string not_shown(const Plan& plan, const Rule& rule, const std::string& path) {
  if (rule.covered_by != nullptr)
    return rule.covered_by->inside +
           " is a private folder inside, empty at the start and writable, made by the view; "
           "--extra-read=" +
           path + " would show this one.\n";
  if (rule.place != nullptr)
    return "It is hidden by " + rule.place->path + " (" + rule.place->from +
           "), kept by the view; leave that rule out to show it.\n";
  return "No rule grants it, kept by " + file_layers(plan) + "; --extra-read=" + path +
         " would allow reading, --extra-write=" + path + " writing.\n";
}

// By the name that was asked for.
std::string why_link(const Plan& plan, const Link& link, const std::string& given,
                     const Traced& traced) {
  const bool target = rule_about(plan, traced.path).shows(plan.layout);
  const std::string venv = venv_above(given);
  const std::string wanted = venv.empty() ? given : venv;
  return given + ": not shown (" + (link.inside == given ? "it" : link.inside) + " leads to " +
         (link.inside == given || target ? traced.path : link.text) +
         (target ? ", which is). " : "). ") +
         not_shown(plan, rule_about(plan, link.inside), wanted);
}

std::string why_path(const Plan& plan, const std::string& given) {
  // A path of the guest's own names, such as /workspace/x, means what is shown there.
  const Place* moved = seen_at(plan, given);
  std::string host_path = given;
  if (moved != nullptr && moved->inside != moved->path)
    host_path = moved->path + given.substr(moved->inside.size());
  else
    moved = nullptr;
  Result<Traced> traced = trace(host_path);
  if (const Link* missing = traced && plan.view ? missing_link(plan, *traced) : nullptr)
    return why_link(plan, *missing, given, *traced);
  Asked asked{.path = traced ? traced->path : host_path, .traced = {}};
  if (traced) asked.traced = *traced;
  const std::string& path = asked.path;
  const Rule rule = rule_about(plan, path);
  std::string text = path + (traced ? "" : " (does not exist)");
  if (moved != nullptr)
    text = given + ", which is " + text;
  else if (traced && !traced->links.empty())
    text = given + ", which leads to " + text;
  if (std::optional<std::string> own = made_for_the_guest(plan, path)) return text + ": " + *own;
  if (!rule.shows(plan.layout) && (rule.place == nullptr || rule.covered_by != nullptr))
    return text + ": not shown. " + not_shown(plan, rule, path);
  // And the other way round: what is shown elsewhere is not at its own name.
  if (moved == nullptr && rule.place != nullptr && rule.place->inside != rule.place->path)
    text += ", inside " + rule.place->inside + path.substr(rule.place->path.size());
  return text + ": " + why_granted(plan, rule.place, asked);
}

// The value of a variable, if it is set.
std::optional<std::string_view> value_in(const std::vector<std::string>& environment,
                                         std::string_view name) {
  for (const std::string_view entry : environment)
    if (entry.starts_with(name) && entry.substr(name.size()).starts_with('='))
      return entry.substr(name.size() + 1);
  return std::nullopt;
}

std::string why_variable(const Plan& plan, const std::string& name, const Caller& caller) {
  const std::optional<std::string_view> outside = value_in(caller.environment, name);
  const std::optional<std::string_view> inside = value_in(plan.environment, name);
  const std::string text = "$" + name + ": ";
  const std::string set = "--env " + name + "=VALUE would set it";
  if (!inside && !outside) return text + "set neither here nor inside; " + set + ".\n";
  if (!inside)
    return text + "not passed on, kept by env scrub; --extra-env=" + name + " would pass it on, " +
           set + ".\n";
  if (inside != outside)
    return text + "has a value of its own inside: " + std::string(*inside) + "\n";
  if (plan.policy.environment.everything)
    return text +
           "passed on, as all variables are; --deny-env would keep back what programs do "
           "not need.\n";
  return text + "passed on, as it is among those that this policy lets through.\n";
}

// A variable is written as for a shell.
std::optional<std::string> variable_in(std::string_view text, const Caller& caller) {
  if (!text.starts_with('$') || exists(absolute(text, caller))) return std::nullopt;
  const std::string_view name = text.substr(1);
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
  if (name.empty() || name.find_first_not_of(kLetters) != name.npos) return std::nullopt;
  return std::string(name);
}

}  // namespace

std::string explain_why(const Plan& plan, std::string_view asked, const Caller& caller) {
  if (const std::optional<std::string> name = variable_in(asked, caller))
    return why_variable(plan, *name, caller);
  if (std::optional<std::string> host = host_in(asked, caller))
    return explain_host(plan.policy, *host);
  return why_path(plan, absolute(asked, caller));
}

}  // namespace belljar
