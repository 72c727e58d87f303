// The same questions to the Linux plan and to the Mac's profile of the same policy: can the
// guest reach this file of the host's, can it make one there, can it connect? Where the answers
// differ, the difference has a name, and docs/macos.md explains it.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>

#include "base/file.h"
#include "plan/supposed.h"
#include "support/folder.h"
#include "support/mac.h"

namespace belljar {
namespace {

// A person's folders, for real, since a Linux plan opens what it grants.
class Scene {
 public:
  Scene() {
    for (const char* file :
         {"home/.ssh/id_rsa", "home/.cargo/bin/tool", "home/.cargo/credentials.toml",
          "home/.docker/run/docker.sock", "home/other/x", "home/project/a", "home/project/.env",
          "home/project/.git/config", "home/project/sub/key.pem", "home/project/s.sock",
          "data/in.csv", "data/s.sock", "out/x"}) {
      const std::filesystem::path path = at(file);
      std::filesystem::create_directories(path.parent_path());
      std::ofstream(path) << "x";
    }
  }
  std::string at(const std::string& name) const { return base_ + "/" + name; }
  Caller caller() const {
    return {.home = at("home"),
            .cwd = at("home/project"),
            .environment = {"PATH=/usr/bin:/bin", "HOME=" + at("home")}};
  }

 private:
  testing::Folder folder_;
  std::string base_ = std::filesystem::canonical(folder_.path());
};

enum class Deed { read, write, exec, make, list, connect };

struct Probe {
  Deed deed;
  std::string what;  // a path, HOST:PORT, or "host:PORT": a service of the machine's own
};

constexpr const char* kDeeds[] = {"read", "write", "exec", "make", "list", "connect"};

// ---- Linux: what is shown where ----
class LinuxAnswers {
 public:
  explicit LinuxAnswers(const Plan& plan) : plan_(plan), layout_(plan.layout) {}

  bool answer(const Probe& probe) const {
    const std::string path = real(probe.what);
    switch (probe.deed) {
      case Deed::read:
      case Deed::exec:
        return reach(path).reads;
      case Deed::write:
        return reach(path).writes;
      case Deed::make:
        return is_own_device(path) || is_private(path, deepest(path)) ||
               (deepest(path) != nullptr ? deepest(path)->access == Access::write
                                         : layout_.root_writable);
      case Deed::list:
        return layout_.whole_root;  // else it lists a root of its own
      case Deed::connect:
        return connects(probe.what);
    }
    return false;
  }

 private:
  struct Reach {
    bool reads = false, writes = false;
  };

  static std::string real(const std::string& path) {
    return path.starts_with('/') ? std::filesystem::weakly_canonical(path).string() : path;
  }
  // /dev/shm, /dev/pts: new ones, of the jar's.
  bool is_own_device(const std::string& path) const {
    return layout_.own_dev && (is_below(path, "/dev/shm") || is_below(path, "/dev/pts"));
  }
  const Place* deepest(const std::string& inside) const {
    const Place* found = nullptr;
    for (const Place& place : layout_.places)
      if (is_below(inside, place.inside) &&
          (found == nullptr || place.inside.size() >= found->inside.size()))
        found = &place;
    return found;
  }
  bool is_private(const std::string& inside, const Place* over) const {
    return std::ranges::any_of(layout_.private_dirs, [&](const PrivateDir& dir) {
      return is_below(inside, dir.inside) &&
             (over == nullptr || dir.inside.size() > over->inside.size());
    });
  }
  // Of the host's file at this path, wherever it is shown.
  Reach reach(const std::string& path) const {
    Reach reach;
    for (const Place& place : layout_.places) {
      if (!is_below(path, place.path) || place.access == Access::hide) continue;
      const std::string inside = place.inside + path.substr(place.path.size());
      if (deepest(inside) != &place || is_private(inside, &place)) continue;
      reach.reads = true;
      reach.writes |= place.access == Access::write;
    }
    const bool dev = layout_.own_dev && is_below(path, "/dev");
    if (layout_.whole_root && deepest(path) == nullptr && !is_private(path, nullptr) && !dev)
      reach = {true, layout_.root_writable};
    return reach;
  }
  bool connects(const std::string& what) const {
    if (what.starts_with('/')) return reach(real(what)).reads;
    if (plan_.policy.network == Network::full) return true;
    return plan_.policy.network == Network::loopback && what.starts_with("localhost:");
  }

  const Plan& plan_;
  const Layout& layout_;
};

// ---- a Mac: what the profile says of the real path ----
class MacAnswers {
 public:
  explicit MacAnswers(const Plan& plan) : profile_(testing_mac::parsed(plan)) {}

  bool answer(const Probe& probe) const {
    constexpr const char* kOperations[] = {"file-read-data", "file-write-data",
                                           "process-exec",   "file-write-create",
                                           "file-read-data", "network-outbound"};
    sbpl::Act act{.operation = kOperations[static_cast<std::size_t>(probe.deed)]};
    if (probe.what.starts_with('/'))
      act.path = real(probe.what);
    else
      act.remote =
          probe.what.starts_with("host:") ? "localhost" + probe.what.substr(4) : probe.what;
    return profile_.allows(act);
  }

 private:
  static std::string real(const std::string& path) {
    for (const char* link : {"/tmp", "/var", "/etc"})
      if (is_below(path, link)) return "/private" + path;
    return path;
  }
  sbpl::Profile profile_;
};

// ---- what differs, and why: the list of docs/macos.md ----
struct Difference {
  const char* name;
  bool mac;  // what a Mac answers
  std::function<bool(const Policy&, const Probe&)> is_it;
};

std::vector<Difference> differences(const Scene& scene) {
  auto in = [](const Probe& probe, const std::string& tree) { return is_below(probe.what, tree); };
  const std::string home = scene.at("home");
  return {
      {"private-folders", false,
       [=](const Policy& policy, const Probe& probe) {
         const bool at_home = in(probe, home) && policy.files.home == Home::temporary;
         return probe.deed == Deed::make && !in(probe, policy.files.workdir) &&
                (in(probe, "/tmp") || in(probe, "/dev/shm") || at_home);
       }},
      {"own-paths", false,
       [=](const Policy&, const Probe& probe) {
         return probe.deed == Deed::make && (in(probe, "/workspace") || in(probe, "/home/sandbox"));
       }},
      {"machine-loopback", true,
       [](const Policy& policy, const Probe& probe) {
         return policy.network == Network::loopback && probe.what.starts_with("host:");
       }},
      {"service-data", false,
       [=](const Policy&, const Probe& probe) {
         return in(probe, "/usr/local/var") || in(probe, "/Library/Keychains");
       }},
      {"sockets-are-written", false,
       [=](const Policy&, const Probe& probe) {
         return probe.deed == Deed::connect && probe.what.starts_with('/');
       }},
      {"root-names", true,
       [](const Policy& policy, const Probe& probe) {
         return probe.deed == Deed::list && policy.files.reads != Reads::everything;
       }},
      {"globs-hold-on", false,
       [](const Policy& policy, const Probe& probe) {
         return probe.deed == Deed::make && !policy.files.hide_globs.empty() &&
                probe.what.ends_with(".pem");
       }},
  };
}

std::vector<Probe> probes(const Scene& scene) {
  std::vector<Probe> all;
  const std::vector<std::string> files = {scene.at("home/project/a"),
                                          scene.at("home/project/.env"),
                                          scene.at("home/project/.git/config"),
                                          scene.at("home/project/sub/key.pem"),
                                          scene.at("home/.ssh/id_rsa"),
                                          scene.at("home/other/x"),
                                          scene.at("home/.cargo/bin/tool"),
                                          scene.at("home/.cargo/credentials.toml"),
                                          scene.at("data/in.csv"),
                                          scene.at("out/x"),
                                          "/usr/bin/env",
                                          "/etc/hosts",
                                          "/etc/passwd",
                                          "/usr/local/var/db",
                                          "/Library/Keychains/System.keychain",
                                          "/var/run/docker.pid",
                                          "/tmp/belljar-probe-of-another",
                                          "/dev/null",
                                          "/dev/disk0"};
  for (const std::string& file : files)
    for (Deed deed : {Deed::read, Deed::write}) all.push_back({deed, file});
  for (const char* file : {"home/project/a", "home/project/.env", "home/.cargo/bin/tool",
                           "home/.ssh/id_rsa", "data/in.csv"})
    all.push_back({Deed::exec, scene.at(file)});
  all.push_back({Deed::exec, "/usr/bin/env"});
  for (const char* file : {"home/project/new", "home/project/.git/new", "home/project/sub/new.pem",
                           "home/new", "data/new", "out/new"})
    all.push_back({Deed::make, scene.at(file)});
  for (const char* file :
       {"/tmp/new", "/usr/new", "/workspace/new", "/home/sandbox/new", "/dev/shm/new", "/etc/new"})
    all.push_back({Deed::make, file});
  all.push_back({Deed::list, "/"});
  for (const char* where :
       {"localhost:8000", "host:5432", "192.0.2.1:443", "192.0.2.1:22", "/var/run/docker.sock"})
    all.push_back({Deed::connect, where});
  for (const char* socket : {"home/project/s.sock", "home/.docker/run/docker.sock", "data/s.sock"})
    all.push_back({Deed::connect, scene.at(socket)});
  return all;
}

std::map<std::string, Settings> policies(const Scene& scene) {
  std::map<std::string, Settings> all;
  for (const char* profile : {"developer", "restricted", "public-bot", "trusted-maintenance"})
    all[profile].profile = profile;
  Settings exceptions;
  exceptions.profile = "developer";
  exceptions.network = "none";
  exceptions.extra_fs_read = {scene.at("data")};
  exceptions.extra_fs_write = {scene.at("out")};
  exceptions.hide = {scene.at("home/project/.env"), scene.at("home/project/**/*.pem")};
  exceptions.protect = {scene.at("home/project/.git")};
  all["exceptions"] = exceptions;
  all["nothing written, no network"] = {.deny_write = true, .deny_net = true};
  all["only data is read"] = {.allow_read = {scene.at("data")}};
  all["nothing denied"].profile = "open";
  return all;
}

Host full_host() { return supposed_host("/sys/fs/cgroup/user.slice"); }

TEST(MacProbes, a_mac_answers_as_linux_but_for_the_differences_that_are_listed) {
  const Scene scene;
  const Caller caller = scene.caller();
  const std::vector<Difference> known = differences(scene);
  std::set<std::string> met;
  std::size_t asked = 0;
  for (const auto& [name, settings] : policies(scene)) {
    Result<Policy> policy = make_policy(settings, {.cwd = caller.cwd, .home = caller.home});
    ASSERT_TRUE(policy) << policy.error().message();
    const Result<Plan> linux_plan = resolve(*policy, full_host(), caller, Purpose::explain);
    ASSERT_TRUE(linux_plan) << linux_plan.error().message();
    const Result<Plan> mac_plan =
        testing_mac::mac_plan(*policy, caller, observe_mac(*policy, caller));
    ASSERT_TRUE(mac_plan) << mac_plan.error().message();
    const LinuxAnswers on_linux(*linux_plan);
    const MacAnswers on_mac(*mac_plan);
    for (const Probe& probe : probes(scene)) {
      ++asked;
      const bool mac = on_mac.answer(probe);
      if (mac == on_linux.answer(probe)) continue;
      const auto why = std::ranges::find_if(known, [&](const Difference& one) {
        return one.mac == mac && one.is_it(*policy, probe);
      });
      if (why != known.end()) met.insert(why->name);
      EXPECT_NE(why, known.end()) << name << ": " << kDeeds[static_cast<std::size_t>(probe.deed)]
                                  << " " << probe.what << ": a Mac says " << mac;
    }
  }
  EXPECT_GE(asked, 200U);

  // Each one that is listed happens, and the page lists just these.
  std::set<std::string> listed, written;
  for (const Difference& one : known) listed.insert(one.name);
  EXPECT_EQ(met, listed);
  const std::string page =
      read_text(std::string(BELLJAR_GOLDEN_DIR) + "/../../docs/macos.md").value_or("");
  for (std::size_t at = page.find("## Differences"); (at = page.find("\n| `", at)) != page.npos;) {
    at += 4;
    written.insert(page.substr(at, page.find('`', at) - at));
  }
  EXPECT_EQ(written, listed) << "docs/macos.md, Differences";
}

}  // namespace
}  // namespace belljar
