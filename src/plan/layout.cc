#include "plan/layout.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "plan/covered.h"
#include "plan/exceptions.h"
#include "plan/layout_etc.h"
#include "plan/mount_points.h"
#include "plan/own_places.h"
#include "plan/paths.h"
#include "plan/planted.h"
#include "plan/scratch.h"
#include "plan/sights.h"
#include "plan/toolchains.h"
#include "plan/tree_search.h"
#include "plan/workdir.h"

namespace belljar {
namespace {

// What an installed program needs to run. Missing ones are skipped.
constexpr const char* kSystem[] = {"/usr",
                                   "/bin",
                                   "/sbin",
                                   "/lib",
                                   "/lib32",
                                   "/lib64",
                                   "/libx32",
                                   "/etc",
                                   "/opt",
                                   "/nix",
                                   "/snap",
                                   "/home/linuxbrew",
                                   "/sys/devices/system"};
constexpr const char* kRuntime[] = {
    "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/share",
    "/usr/local/bin", "/usr/local/sbin", "/usr/local/lib", "/bin", "/sbin", "/lib", "/lib32",
    "/lib64", "/run/current-system/sw", "/nix/store", "/nix/var/nix/profiles/default",
    // Of /etc only what has no say about people: the loader's cache, certificates,
    // the time zone, the links by which Debian chooses an awk, and what its matplotlib needs.
    "/etc/ld.so.cache", "/etc/alternatives", "/etc/ssl/certs", "/etc/localtime",
    "/etc/matplotlibrc"};
constexpr const char* kDevices[] = {"/dev/null",   "/dev/zero",    "/dev/full",
                                    "/dev/random", "/dev/urandom", "/dev/tty"};

enum class Asked { by_name, found };  // a grant of the person's, or one of ours

class Builder {
 public:
  Builder(const Policy& policy, const Caller& caller, LayoutOptions options)
      : policy_(policy),
        files_(policy.files),
        caller_(caller),
        options_(options),
        root_(options.root) {}

  Result<Layout> build() {
    // By its real name, since mounts are made without following symlinks.
    Result<Traced> home = tracer_.trace(caller_.home);
    home_ = home ? home->path : caller_.home;
    guest_trees_ = GuestTrees(files_, caller_, tracer_);
    own_ = OwnPlaces(caller_, tracer_);
    if (home)
      for (Link& link : home->links) add_link(std::move(link));
    layout_.whole_root = files_.reads == Reads::everything;
    layout_.root_writable = files_.writes_everything && layout_.whole_root;
    layout_.own_dev = !layout_.root_writable;
    add_system();
    if (files_.toolchains && !layout_.whole_root) add_toolchains();
    TRY(add_workdir());
    TRY(add_grants());
    TRY(add_home());
    TRY(add_tmp());
    TRY(add_cache());
    TRY(add_credentials());
    if (layout_.whole_root && !files_.other_homes) empty("/home");
    if (layout_.whole_root && !files_.services) empty("/run");
    if (!options_.view) TRY(do_without_view());
    drop_covered(layout_);
    TRY(add_exceptions());
    TRY(find_start());
    TRY(open_places());
    if (options_.view)
      TRY(make_mount_points(
          layout_, options_.make_folders ? MissingMountPoints::make : MissingMountPoints::leave));
    if (files_.reads == Reads::runtime) add_minimal_etc(layout_, root_);
    if (policy_.network == Network::hosts) lead_names_to_broker(layout_, files_.reads);
    if (root_ && options_.view) add_jar_user(layout_);
    std::ranges::stable_sort(layout_.places, {}, [](const Place& p) { return p.inside.size(); });
    return std::move(layout_);
  }

 private:
  // ---- one path ----
  Status add(const std::string& path, Access access, std::string_view from, Asked asked,
             std::string inside = {}) {
    Traced traced = TRY(tracer_.trace(path));
    TRY(guest_trees_.check(traced, from, path));
    // Skills lie there, of which the server shows some.
    if (asked == Asked::by_name && from != "skills") TRY(own_.refuse(traced.path, from));
    for (Link& link : traced.links) add_link(std::move(link));
    Place place{.path = traced.path,
                .inside = inside.empty() || !options_.view ? traced.path : std::move(inside),
                .access = access,
                .from = std::string(from),
                .fd = {},
                .st = traced.st};
    place.owned = root_ && asked == Asked::by_name && options_.show_as_owned && options_.view;
    layout_.places.push_back(std::move(place));
    return {};
  }

  // Several places are reached through /bin.
  void add_link(Link link) {
    auto same = [&](const Link& other) { return other.inside == link.inside; };
    if (std::ranges::none_of(layout_.links, same)) layout_.links.push_back(std::move(link));
  }

  // What belongs to the system may be missing.
  void add_if_there(const char* path) { (void)add(path, Access::read, "system", Asked::found); }

  void add_system() {
    if (files_.reads == Reads::system)
      for (const char* path : kSystem) add_if_there(path);
    if (files_.reads == Reads::runtime)
      for (const char* path : kRuntime) add_if_there(path);
    // Often a symlink into /run, which is not shown.
    if (files_.reads != Reads::runtime && policy_.network == Network::full)
      add_if_there("/etc/resolv.conf");
    if (!layout_.own_dev) return;
    for (std::string_view path : kDevices) {
      // A shared mapping of /dev/zero is shared anonymous memory. /dev/full reads the same
      // and cannot be mapped.
      const bool replaced = options_.no_shared_zero && options_.view && path == "/dev/zero";
      const Status added =
          replaced ? add("/dev/full", Access::write, "system", Asked::found, "/dev/zero")
                   : add(std::string(path), Access::write, "system", Asked::found);
      if (!added) continue;
      layout_.places.back().device = true;
    }
  }

  void add_toolchains() {
    Toolchains toolchains = find_toolchains(caller_, tracer_, guest_trees_);
    secrets_ = std::move(toolchains.secrets);
    for (const std::string& folder : toolchains.folders) add_toolchain(folder);
  }

  // Only a view can hide a token inside a folder. Without one, everything in the
  // folder is granted but that.
  void add_toolchain(const std::string& folder) {
    Result<Traced> traced = tracer_.trace(folder);
    if (!traced || std::ranges::find(secrets_, traced->path) != secrets_.end()) return;
    const bool has_secret = std::ranges::any_of(
        secrets_, [&](const std::string& secret) { return is_below(secret, traced->path); });
    if (options_.view || !has_secret) {
      (void)add(folder, Access::read, "toolchain", Asked::found);  // gone since: not needed
      return;
    }
    const Result<std::vector<std::string>> parts = expand_glob(traced->path + "/*");
    if (!parts) return;  // what cannot be found is not granted
    for (const std::string& path : *parts) add_toolchain(path);
  }

  // ---- what the person asked for ----
  Status add_workdir() {
    if (files_.workdir.empty()) return {};
    Result<Traced> traced = tracer_.trace(files_.workdir);
    if (!traced)
      return fail("workdir " + files_.workdir, traced.error().err, "-C names another one");
    if (!S_ISDIR(traced->st.st_mode))
      return fail("workdir " + files_.workdir + " is not a folder", 0, "-C names another one");
    if (TRY(is_shown_as_root("workdir", traced->path, files_.workdir_access))) {
      layout_.workdir = "/";
      return {};
    }
    if (files_.workdir_access == Access::write && !layout_.root_writable)
      TRY(refuse_system_folder(traced->path));
    const bool moved = options_.view && !files_.workdir_inside.empty();
    layout_.workdir = moved ? files_.workdir_inside : traced->path;
    if (files_.workdir_access == Access::hide)
      layout_.folders.push_back(layout_.workdir);
    else
      TRY(add(files_.workdir, files_.workdir_access, "workdir", Asked::by_name,
              files_.workdir_inside));
    return {};
  }

  Status add_grants() {
    for (const Grant& grant : files_.grants) {
      if (grant.access == Access::hide || grant.access == Access::protect) continue;
      if (grant.access == Access::write) TRY(make_missing(grant.path, grant.from));
      Result<Traced> traced = tracer_.trace(grant.path);
      if (traced && TRY(is_shown_as_root(grant.from, traced->path, grant.access))) continue;
      if (traced && options_.view && is_below(traced->path, "/proc"))
        layout_.warnings.push_back(grant.from + ": " + grant.path +
                                   " is not the host's: the guest has a /proc of its own");
      else if (traced)
        TRY(add(grant.path, grant.access, grant.from, Asked::by_name));
      else
        TRY(complain(layout_, policy_, grant.from + ": " + grant.path + " cannot be opened",
                     traced.error().err));
    }
    return {};
  }

  // The root of the guest is made of what is granted, so all of / is no grant like the
  // others. True: it is there already, as the guest's own root.
  Result<bool> is_shown_as_root(const std::string& from, std::string_view path,
                                Access access) const {
    if (path != "/") return false;
    if (layout_.whole_root && (layout_.root_writable || access != Access::write)) return true;
    return fail(from + ": / is the whole file system, and only a profile can grant that", 0,
                "name the folders that are needed; --profile=trusted-maintenance reads all of /");
  }

  // An allowed write path that does not exist is made, and removed again if it
  // stayed empty.
  Status make_missing(const std::string& path, std::string_view from) {
    struct stat st{};
    if (::stat(path.c_str(), &st) == 0) return {};
    TRY(own_.refuse(real_name(path, tracer_), from));
    if (!options_.make_folders) {
      layout_.warnings.push_back(path + " does not exist and would be made");
      return {};
    }
    const std::size_t slash = path.rfind('/');
    const std::string above = slash == 0 ? "/" : path.substr(0, slash);
    const std::string name = path.substr(slash + 1);
    TRY(make_missing(above, from));
    if (name.empty() || name == "." || name == "..") return {};
    Traced parent = TRY(tracer_.trace(above));
    TRY(guest_trees_.check(parent, from, above));
    Fd folder = TRY(open_traced(parent.path, parent.st));
    if (::mkdirat(folder.get(), name.c_str(), 0777) < 0) {
      if (errno != EEXIST) return fail("make " + path, errno);
      tracer_ = {};
      return {};  // another run has made it meanwhile
    }
    tracer_ = {};  // it may remember that this was not there
    layout_.leftovers.add_folder(std::move(folder), name);
    return {};
  }

  Status add_home() {
    TRY(check_home(files_, caller_));
    const std::string inside = files_.home_inside.empty() ? home_ : files_.home_inside;
    layout_.home = inside;
    if (!files_.home_dir.empty()) {
      TRY(make_missing(files_.home_dir, "home"));
      TRY(add(files_.home_dir, Access::write, "home", Asked::by_name, inside));
      layout_.home = layout_.places.back().inside;  // without a view: its own path
      return refuse_root("home");
    }
    if (files_.home == Home::temporary) {
      if (!is_granted(inside)) layout_.private_dirs.push_back({inside, 0700});
    } else if (root_) {
      // The caller's home, shown as the jar's own.
      Access access = files_.writes_everything ? Access::write : Access::read;
      if (layout_.whole_root) return add(inside, access, "home", Asked::by_name);
    }
    return {};
  }

  Status refuse_root(const char* from) const {
    if (layout_.places.back().path != "/") return {};
    return fail(std::string(from) + ": / is the whole file system", 0, "name a folder");
  }

  Status add_tmp() {
    if (!files_.tmp_dir.empty()) {
      TRY(make_missing(files_.tmp_dir, "tmp"));
      TRY(add(files_.tmp_dir, Access::write, "tmp", Asked::by_name, "/tmp"));
      layout_.tmp = layout_.places.back().inside;
      return refuse_root("tmp");
    }
    if (!files_.private_tmp) return {};
    layout_.tmp = "/tmp";
    if (is_granted("/tmp")) return {};
    Result<Traced> traced = tracer_.trace("/tmp");
    const bool by_real_name = layout_.whole_root && traced;
    layout_.private_dirs.push_back({by_real_name ? traced->path : "/tmp", 01777});
    if (!layout_.whole_root) layout_.links.push_back({"/var/tmp", "/tmp"});
    return {};
  }

  Status add_cache() {
    if (files_.cache_dir.empty()) return {};
    TRY(make_missing(files_.cache_dir, "cache"));
    TRY(add(files_.cache_dir, Access::write, "cache", Asked::by_name));
    TRY(refuse_root("cache"));
    layout_.cache = layout_.places.back().inside;
    return {};
  }

  Status add_credentials() {
    for (const Credential& credential : files_.credentials) TRY(add_credential(credential));
    return {};
  }

  // Both ends are resolved before they are checked: `home/../../etc` is not below
  // the home.
  Status add_credential(const Credential& credential) {
    Result<Traced> source = tracer_.trace(credential.source);
    const std::string& from = credential.from;
    if (!source) return fail(from + ": " + credential.source, source.error().err);
    TRY(guest_trees_.check(*source, from, credential.source));
    const bool in_workdir = !credential.destination.starts_with('/');
    std::string destination = normalise(in_workdir ? layout_.workdir + "/" + credential.destination
                                                   : credential.destination);
    const bool placed = std::ranges::any_of(
        std::array{layout_.home, layout_.workdir, layout_.cache}, [&](const std::string& tree) {
          return !tree.empty() && is_below(destination, tree) && destination != tree;
        });
    if (!placed)
      return fail(from + ": " + credential.destination + " is outside home, workdir and cache", 0,
                  "choose a destination below the home folder");
    TRY(add(source->path, Access::read, from, Asked::by_name, destination));
    const Place& place = layout_.places.back();
    if (!S_ISREG(place.st.st_mode) && !place.is_dir())
      return fail(from + ": " + credential.source + " is neither a file nor a folder");
    for (const char* store : kKeyStores)
      if (place.path == home_ + "/" + store)
        layout_.warnings.push_back("credential: all of " + place.path +
                                   " is shown; mount the one file that is needed");
    return {};
  }

  static std::string normalise(std::string_view path) {
    std::vector<std::string_view> names;
    while (!path.empty()) {
      std::string_view name = path.substr(0, path.find('/'));
      path.remove_prefix(std::min(name.size() + 1, path.size()));
      if (name == ".." && !names.empty()) names.pop_back();
      if (!name.empty() && name != "." && name != "..") names.push_back(name);
    }
    std::string result;
    for (std::string_view name : names) result.append("/").append(name);
    return result.empty() ? "/" : result;
  }

  // Without a root of its own the guest's private folders are real ones, made for
  // it and removed after it; TMPDIR and HOME lead there.
  Status do_without_view() {
    if (!layout_.private_dirs.empty() && options_.make_folders) {
      remove_stale_scratch_folders();
      std::string scratch = TRY(make_scratch_folder());
      layout_.leftovers.add_scratch(scratch);
      for (PrivateDir& dir : std::exchange(layout_.private_dirs, {})) {
        std::string path = scratch + (dir.inside == "/tmp" ? "/tmp" : "/home");
        if (dir.inside != "/tmp" && dir.inside != layout_.home) continue;
        if (::mkdir(path.c_str(), 0700) < 0) return fail("make " + path, errno);
        TRY(add(path, Access::write, "private", Asked::by_name));
        (dir.inside == "/tmp" ? layout_.tmp : layout_.home) = path;
      }
    }
    if (layout_.whole_root) return {};
    if (options_.outside_proc) {
      add_if_there("/proc");
      // Semaphores and shared memory have names there, also other programs'.
      (void)add("/dev/shm", Access::write, "system", Asked::found);
    }
    (void)add("/dev/pts", Access::write, "system", Asked::found);
    (void)add("/dev/ptmx", Access::write, "system", Asked::found);
    return {};
  }

  // ---- the whole ----
  bool is_granted(std::string_view inside) const {
    return std::ranges::any_of(layout_.places, [&](const Place& place) {
      return place.from != "system" && place.from != "toolchain" && is_below(inside, place.inside);
    });
  }

  // With the whole root shown, this folder is not, but for what is granted in it:
  // other people's homes, the sockets of services.
  void empty(const char* folder) {
    Result<Traced> traced = tracer_.trace(folder);
    if (traced) layout_.private_dirs.push_back({traced->path, 0755});
  }

  // Only those that are left: a developer's PATH names twenty that are covered.
  Status open_places() {
    for (Place& place : layout_.places) place.fd = TRY(open_traced(place.path, place.st));
    return {};
  }

  // ---- hide and protect ----
  Status add_exceptions() {
    if (!options_.view) {
      note_lost_exceptions();
      return {};
    }
    std::vector<std::string> hide = secrets_;
    for (const OwnPlaces::Place& own : own_.places()) {
      const std::vector<Sight> seen = sights(layout_, own.real);
      if (seen.empty()) continue;
      // Root's guest is another user, but to what is shown as its own.
      const bool as_stranger = root_ && std::ranges::none_of(seen, &Sight::owned);
      if (as_stranger && is_closed_to_others(own.real)) continue;
      if (own.is_folder && !as_stranger && options_.make_folders) {
        const Status held = hold_folder(own.real, layout_.leftovers);
        // One that appears later would be shown, but the guest does not make it.
        const bool writable = std::ranges::any_of(seen, &Sight::writable);
        if (!held && writable) return held;
        tracer_ = {};  // it may remember that this was not there
      }
      hide.push_back(own.path);
    }
    return belljar::add_exceptions(layout_, policy_, tracer_, home_, hide);
  }

  // What a stranger cannot reach, the child that makes the view cannot cover either.
  static bool is_closed_to_others(std::string path) {
    for (struct stat st{}; path.size() > 1;) {
      path.resize(std::max<std::size_t>(path.rfind('/'), 1));
      if (::lstat(path.c_str(), &st) == 0 && (st.st_mode & S_IXOTH) == 0) return true;
    }
    return false;
  }

  // Where the guest finds the folder that it is to start in.
  Status find_start() {
    if (files_.start_in.empty()) return {};
    Result<Traced> traced = tracer_.trace(files_.start_in);
    if (!traced) return fail("start_in " + files_.start_in, traced.error().err);
    if (!S_ISDIR(traced->st.st_mode))
      return fail("start_in " + files_.start_in + " is not a folder");
    const std::vector<Sight> seen = sights(layout_, traced->path);
    if (!seen.empty())
      layout_.start = seen.front().inside;
    else if (std::ranges::find(layout_.private_dirs, traced->path, &PrivateDir::inside) !=
             layout_.private_dirs.end())
      layout_.start = traced->path;
    else
      return fail("start_in: " + traced->path + " is not shown to the guest", 0,
                  "--extra-read=" + traced->path + " shows it");
    return {};
  }

  void note_lost_exceptions() {
    layout_.lost_exceptions = std::ranges::any_of(files_.grants, [](const Grant& grant) {
      return grant.access == Access::hide || grant.access == Access::protect;
    });
    layout_.lost_exceptions |= !files_.hide_globs.empty() || !files_.protect_globs.empty();
    for (const OwnPlaces::Place& own : own_.places())
      if (own.is_folder && !sights(layout_, own.real).empty()) {
        layout_.shown_own = own.path;
        return;
      }
  }

  const Policy& policy_;
  const Files& files_;
  const Caller& caller_;
  LayoutOptions options_;
  bool root_;
  Tracer tracer_;
  GuestTrees guest_trees_;
  OwnPlaces own_;
  std::string home_;
  Layout layout_;
  std::vector<std::string> secrets_;
};

}  // namespace

Result<Layout> make_layout(const Policy& policy, const Caller& caller, LayoutOptions options) {
  return Builder(policy, caller, options).build();
}

}  // namespace belljar
