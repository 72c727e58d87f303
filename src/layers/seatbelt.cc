#include "layers/seatbelt.h"

#include <algorithm>
#include <cerrno>
#include <set>

#include "layers/layout.h"
#include "layers/seatbelt_startup.h"
#include "layers/seatbelt_text.h"

namespace belljar::seatbelt {
namespace {

using Kind = Filter::Kind;
using enum Verdict;

constexpr int kMaxLinks = 32;  // macOS's own limit
// The profile is an argument, and those have 1 MiB together with the variables.
constexpr std::size_t kMaxProfile = std::size_t{1} << 18U;

const std::vector<std::string> kReading = {"file-read*", "file-map-executable", "process-exec*"};

// Also what a hard link, which is another name to change it by, would take.
const std::vector<std::string> kChanging = {"file-write*", "file-link", "network-bind"};

std::string above(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == 0 || slash == path.npos ? "/" : std::string(path.substr(0, slash));
}

struct Entry {
  std::string path;
  Access access;
};

// The rules about files, from the shortest path to the longest.
class Files {
 public:
  Files(const Policy& policy, const Layout& layout, const Machine& machine)
      : policy_(policy), layout_(layout), machine_(machine) {
    for (const Place& place : layout.places) {
      entries_.push_back({place.path, place.access});
      if (place.inside != place.path) entries_.push_back({place.inside, place.access});
    }
    std::ranges::stable_sort(entries_, {}, [](const Entry& entry) { return entry.path.size(); });
  }

  std::vector<Rule> rules() {
    add_root();
    show_links();
    for (std::size_t i = 0; i < entries_.size(); ++i) add_entry(i);
    pin_links();
    add_globs(policy_.files.protect_globs, Access::protect);
    add_globs(policy_.files.hide_globs, Access::hide);
    return std::move(rules_);
  }

 private:
  void add_root() {
    if (!layout_.whole_root) return;
    std::vector<std::string> operations = kReading;
    if (layout_.root_writable) operations = {"file*", "process-exec*"};
    rules_.push_back({allow, operations, {{Kind::subpath, "/"}}, "the whole file system"});
    if (layout_.root_writable && policy_.files.services)
      rules_.push_back({allow,
                        {"network-outbound", "network-bind"},
                        {{Kind::subpath, "/"}},
                        "Unix sockets, which are files"});
  }

  void add_entry(std::size_t index) {
    const Entry& entry = entries_[index];
    const std::vector<Filter> here = {{Kind::subpath, entry.path}};
    const bool in_writable = is_writable_above(index);
    switch (entry.access) {
      case Access::read:
        show_folders_above(entry.path);
        if (in_writable) rules_.push_back({deny, kChanging, here, ""});
        rules_.push_back({allow, kReading, here, ""});
        return;
      case Access::write:
        show_folders_above(entry.path);
        rules_.push_back({allow,
                          {"file-read*", "file-write*", "file-map-executable", "process-exec*",
                           "network-outbound", "network-bind"},
                          here,
                          ""});
        // What is moved away takes its rules' paths from under it.
        if (!in_writable)
          rules_.push_back({deny, {"file-write-unlink"}, {{Kind::literal, entry.path}}, ""});
        return;
      case Access::protect:
        rules_.push_back({deny, kChanging, here, "protected"});
        pin_above(index);
        return;
      case Access::hide:
        rules_.push_back(
            {deny, {"file*", "process-exec*", "network-outbound", "network-bind"}, here, "hidden"});
        pin_above(index);
        std::erase_if(shown_, [&](const auto& folder) { return is_below(folder, entry.path); });
        return;
    }
  }

  // The deepest entry above, or the same path's earlier one.
  const Entry* nearest_above(std::size_t index) const {
    for (std::size_t i = index; i-- > 0;)
      if (is_below(entries_[index].path, entries_[i].path)) return &entries_[i];
    return nullptr;
  }
  bool is_writable_above(std::size_t index) const {
    const Entry* nearest = nearest_above(index);
    return nearest != nullptr ? nearest->access == Access::write : layout_.root_writable;
  }

  // So that a path can be looked up and named, as getcwd and realpath do; their contents stay
  // unseen.
  void show_folders_above(const std::string& path) {
    Rule rule{allow, {"file-read-metadata"}, {}, ""};
    for (std::string folder = above(path); folder != "/"; folder = above(folder))
      if (shown_.insert(folder).second) rule.filters.push_back({Kind::literal, folder});
    if (!rule.filters.empty()) rules_.push_back(std::move(rule));
  }

  // A folder above that is moved away would take what is hidden or protected in it out of the
  // rules' reach.
  void pin_above(std::size_t index) {
    const std::string& path = entries_[index].path;
    Rule rule{deny, {"file-write-unlink"}, {}, "or it could be moved away with a folder above"};
    for (std::string folder = above(path); folder != "/"; folder = above(folder))
      if (is_in_writable(folder)) rule.filters.push_back({Kind::literal, folder});
    if (!rule.filters.empty()) rules_.push_back(std::move(rule));
  }
  bool is_in_writable(std::string_view path) const {
    return layout_.root_writable || std::ranges::any_of(entries_, [&](const Entry& entry) {
             return entry.access == Access::write && is_below(path, entry.path);
           });
  }

  // A link on the way to what was named can be followed, and not pointed elsewhere.
  std::vector<Filter> links() const {
    std::vector<Filter> links;
    for (const Link& link : layout_.links) links.push_back({Kind::literal, link.inside});
    return links;
  }
  void show_links() {
    for (const std::string& folder : layout_.folders) {
      show_folders_above(folder);
      rules_.push_back({allow, {"file-read-metadata"}, {{Kind::literal, folder}}, ""});
    }
    if (!layout_.links.empty())
      rules_.push_back({allow, {"file-read-metadata"}, links(), "links that paths lead through"});
  }
  void pin_links() {
    if (!layout_.links.empty())
      rules_.push_back({deny, {"file-write*"}, links(), "or they could be led elsewhere"});
  }

  // Also what comes to match later.
  void add_globs(const std::vector<std::string>& globs, Access access) {
    for (const std::string& glob : globs) {
      std::vector<Filter> here = {{Kind::regex, regex_of_glob(glob)}};
      const std::string real = real_glob(glob);
      if (real != glob) here.push_back({Kind::regex, regex_of_glob(real)});
      if (access == Access::protect)
        rules_.push_back({deny, kChanging, here, "protected"});
      else
        rules_.push_back(
            {deny, {"file*", "process-exec*", "network-outbound", "network-bind"}, here, "hidden"});
    }
  }

  // With the folders before its first wildcard by their real names.
  std::string real_glob(const std::string& glob) const {
    const std::size_t wild = std::min(glob.find_first_of("*?["), glob.size());
    const std::size_t slash = glob.rfind('/', wild);
    if (slash == glob.npos || slash == 0) return glob;
    Result<Traced> traced = trace(machine_, glob.substr(0, slash));
    return traced ? (traced->path == "/" ? "" : traced->path) + glob.substr(slash) : glob;
  }

  const Policy& policy_;
  const Layout& layout_;
  const Machine& machine_;
  std::vector<Entry> entries_;
  std::vector<Rule> rules_;
  std::set<std::string> shown_;
};

// The limits of a process, both kinds of each, set by the shell that then becomes the command:
// a spawn cannot set them. A limit that cannot be set is lower already.
std::string limits_script(const Policy& policy, const Machine& machine) {
  const Limits& limits = policy.limits;
  std::string script = "ulimit -c 0;";
  auto add = [&](const char* letter, std::optional<std::uint64_t> value) {
    if (value)
      script.append(" ulimit -")
          .append(letter)
          .append(" ")
          .append(std::to_string(*value))
          .append(" 2>/dev/null;");
  };
  if (!limits.cpu_renews) add("t", limits.cpu_secs);
  // POSIX counts a file in blocks of 512 bytes.
  if (limits.file_sz_mb) add("f", *limits.file_sz_mb * 2048);
  add("n", limits.open_fds);
  if (limits.procs) add("u", *limits.procs + 1 + machine.processes);
  return script + " exec \"$@\"";
}

}  // namespace

Machine plain_mac() {
  return {.links = {{"/tmp", "private/tmp"}, {"/var", "private/var"}, {"/etc", "private/etc"}},
          .folders = {},
          .scratch = "/private/tmp/belljar-scratch"};
}

Result<Traced> trace(const Machine& machine, std::string_view path) {
  Traced traced{.path = "/", .links = {}};
  std::string rest(path);
  std::size_t at = 0;
  while ((at = rest.find_first_not_of('/', at)) != rest.npos) {
    const std::size_t end = std::min(rest.find('/', at), rest.size());
    const std::string name = rest.substr(at, end - at);
    at = end;
    if (name == ".") continue;
    if (name == "..") {
      traced.path = above(traced.path);
      continue;
    }
    std::string next = (traced.path == "/" ? "" : traced.path) + "/" + name;
    const auto link = std::ranges::find(machine.links, next, &Symlink::path);
    if (link == machine.links.end()) {
      traced.path = std::move(next);
      continue;
    }
    if (traced.links.size() == kMaxLinks) return fail("follow " + std::string(path), ELOOP);
    traced.links.push_back(std::move(next));
    if (link->text.starts_with('/')) traced.path = "/";
    rest = link->text + rest.substr(at);
    at = 0;
  }
  return traced;
}

Result<Plan> resolve(const Policy& policy, const Layout& layout, const Machine& machine) {
  for (const Place& place : layout.places)
    if ((place.path + place.inside).find('\0') != std::string::npos)
      return fail(place.from + ": a path cannot hold a NUL");
  std::vector<Rule> rules = startup_rules();
  auto add = [&](std::vector<Rule> more) { std::ranges::move(more, std::back_inserter(rules)); };
  // Where nothing is denied, only what no profile allows is: no set-id programs, no processes
  // outside.
  if (layout.root_writable && policy.files.services && policy.network == Network::full)
    add({{allow,
          {"mach-lookup", "mach-register", "sysctl-read", "ipc-posix*", "user-preference-read",
           "iokit-open", "iokit-get-properties", "system-socket"},
          {},
          "nothing was denied"}});
  add(network_rules(policy));
  add(Files(policy, layout, machine).rules());
  add(device_rules());
  Plan plan;
  plan.profile = render(rules);
  if (plan.profile.size() > kMaxProfile)
    return fail("the profile for sandbox-exec is larger than an argument can be", 0,
                "grant a folder instead of many files in it");
  plan.wrap = {"/usr/bin/sandbox-exec",        "-p",     plan.profile, "/bin/sh", "-c",
               limits_script(policy, machine), "belljar"};
  plan.workdir = layout.start.empty() ? layout.workdir : layout.start;
  plan.watched_memory_mb = policy.limits.memory_mb;
  plan.watched_cpu_secs = policy.limits.cpu_secs;
  return plan;
}

}  // namespace belljar::seatbelt
