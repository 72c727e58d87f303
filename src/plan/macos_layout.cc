// The same decisions as in layout.cc, where they do not need a root of the guest's own.
#include <algorithm>

#include "layers/layout.h"
#include "layers/seatbelt_startup.h"
#include "plan/macos.h"
#include "plan/toolchains.h"

namespace belljar {
namespace {

class MacLayout {
 public:
  MacLayout(const Policy& policy, const Caller& caller, const seatbelt::Machine& machine)
      : files_(policy.files), network_(policy.network), caller_(caller), machine_(machine) {}

  Result<MacFiles> build() {
    home_ = TRY(trace(caller_.home)).path;
    TRY(find_guest_trees());
    layout_.whole_root = files_.reads == Reads::everything;
    layout_.root_writable = files_.writes_everything && layout_.whole_root;
    layout_.own_dev = false;
    TRY(add_system());
    if (files_.toolchains && !layout_.whole_root) TRY(add_toolchains());
    TRY(add_workdir());
    TRY(add_grants());
    TRY(add_home());
    TRY(add_tmp());
    TRY(add_cache());
    TRY(add_credentials());
    drop_covered();
    TRY(add_personal());
    TRY(add_exceptions());
    if (!files_.start_in.empty()) layout_.start = TRY(trace(files_.start_in)).path;
    std::ranges::stable_sort(layout_.places, {}, [](const Place& p) { return p.path.size(); });
    return MacFiles{std::move(layout_), std::move(scratch_)};
  }

 private:
  Result<seatbelt::Traced> trace(const std::string& path) const {
    return seatbelt::trace(machine_, path);
  }

  // ---- what a guest may have planted (planted.h) ----
  Status find_guest_trees() {
    if (files_.writes_everything && files_.reads == Reads::everything) return {};
    std::vector<std::string> paths = {files_.workdir, files_.home_dir, files_.cache_dir,
                                      files_.tmp_dir};
    for (const Grant& grant : files_.grants)
      if (grant.access == Access::write) paths.push_back(grant.path);
    if (!is_below(home_, TRY(trace(caller_.cwd)).path)) paths.push_back(caller_.cwd);
    for (const std::string& path : paths)
      if (!path.empty()) guest_trees_.push_back(TRY(trace(path)).path);
    return {};
  }
  const std::string* tree_left_by(const seatbelt::Traced& traced) const {
    for (const std::string& link : traced.links)
      for (const std::string& tree : guest_trees_)
        if (is_below(link, tree) && !is_below(traced.path, tree)) return &tree;
    return nullptr;
  }

  // ---- one path ----
  Status add(const std::string& path, Access access, std::string_view from) {
    const seatbelt::Traced traced = TRY(trace(path));
    if (const std::string* tree = tree_left_by(traced))
      return fail(std::string(from) + ": " + path + " leads out of " + *tree +
                      ", where a guest may have planted a symlink, to " + traced.path,
                  0, "if that is meant, name " + traced.path + " itself");
    for (const std::string& link : traced.links)
      if (std::ranges::find(layout_.links, link, &Link::inside) == layout_.links.end())
        layout_.links.push_back({link, ""});
    layout_.places.push_back({.path = traced.path,
                              .inside = given_name(path, traced.path),
                              .access = access,
                              .from = std::string(from),
                              .fd = {}});
    return {};
  }

  // The name as it was given, too: a rule about it does no harm. But what `..` means depends on
  // the links before it, and then only the real path is meant.
  static std::string given_name(const std::string& path, const std::string& real) {
    const bool dots = (path + "/").find("/../") != std::string::npos;
    return dots ? real : lexical(path);
  }
  static std::string lexical(const std::string& path) {
    return seatbelt::trace({}, path).value_or(seatbelt::Traced{}).path;
  }

  Status add_system() {
    for (const char* path : seatbelt::system_folders(files_.reads))
      TRY(add(path, Access::read, "system"));
    // Where /etc/resolv.conf leads.
    if (files_.reads != Reads::runtime && !layout_.root_writable && network_ == Network::full)
      TRY(add("/var/run/resolv.conf", Access::read, "system"));
    return {};
  }

  Status add_toolchains() {
    const ToolchainNames names = toolchain_names(caller_);
    std::vector<std::string> folders = names.folders;
    for (const char* folder : {"/Library/Python", "/Library/pnpm"})
      folders.push_back(caller_.home + folder);
    for (const std::string& program : names.programs) {
      folders.push_back(program);
      const std::string prefix = program.substr(0, program.rfind('/'));
      if (program.ends_with("/bin") && prefix != caller_.home + "/.local" &&
          is_there(prefix + "/lib"))
        folders.push_back(prefix);
    }
    for (const std::string& folder : folders) {
      const seatbelt::Traced traced = TRY(trace(folder));
      if (is_there(folder) && !is_private(traced.path) && tree_left_by(traced) == nullptr)
        TRY(add(folder, Access::read, "toolchain"));
    }
    secrets_ = names.secrets;
    return {};
  }
  bool is_there(const std::string& path) const {
    return std::ranges::find(machine_.folders, path) != machine_.folders.end();
  }
  // The home itself, what is above it, and the folders with its keys.
  bool is_private(const std::string& real) const {
    if (real == "/" || is_below(home_, real)) return true;
    return std::ranges::any_of(
        kKeyStores, [&](const char* store) { return is_below(real, home_ + "/" + store); });
  }

  // ---- what the person asked for ----
  Status add_workdir() {
    if (files_.workdir.empty()) return {};
    const std::string real = TRY(trace(files_.workdir)).path;
    layout_.workdir = real;
    if (TRY(is_shown_as_root("workdir", real, files_.workdir_access))) return {};
    if (!files_.workdir_inside.empty())
      layout_.warnings.push_back("the workdir is at its own path, and not at " +
                                 files_.workdir_inside + ": macOS has no mounts for one program");
    if (files_.workdir_access != Access::hide)
      return add(files_.workdir, files_.workdir_access, "workdir");
    layout_.folders.push_back(real);
    return {};
  }

  Status add_grants() {
    for (const Grant& grant : files_.grants) {
      if (grant.access == Access::hide || grant.access == Access::protect) continue;
      const std::string real = TRY(trace(grant.path)).path;
      if (!TRY(is_shown_as_root(grant.from, real, grant.access)))
        TRY(add(grant.path, grant.access, grant.from));
    }
    return {};
  }

  Result<bool> is_shown_as_root(const std::string& from, std::string_view path,
                                Access access) const {
    if (path != "/") return false;
    if (layout_.whole_root && (layout_.root_writable || access != Access::write)) return true;
    return fail(from + ": / is the whole file system, and only a profile can grant that", 0,
                "name the folders that are needed; --profile=trusted-maintenance reads all of /");
  }

  Status add_named_folder(const std::string& path, const char* from, std::string& where) {
    if (TRY(trace(path)).path == "/")
      return fail(std::string(from) + ": / is the whole file system", 0, "name a folder");
    TRY(add(path, Access::write, from));
    where = layout_.places.back().path;
    return {};
  }

  Status add_home() {
    layout_.home = home_;
    if (!files_.home_dir.empty()) return add_named_folder(files_.home_dir, "home", layout_.home);
    if (files_.home == Home::caller || is_granted(home_)) return {};
    return add_private("/home", layout_.home);
  }

  Status add_tmp() {
    if (!files_.tmp_dir.empty()) return add_named_folder(files_.tmp_dir, "tmp", layout_.tmp);
    if (!files_.private_tmp) return {};
    layout_.tmp = TRY(trace("/tmp")).path;
    if (is_granted(layout_.tmp)) return {};
    return add_private("/tmp", layout_.tmp);
  }

  Status add_private(const char* name, std::string& where) {
    where = machine_.scratch + name;
    scratch_.folder = machine_.scratch;
    scratch_.folders.push_back(where);
    return add(where, Access::write, "private");
  }

  Status add_cache() {
    if (files_.cache_dir.empty()) return {};
    return add_named_folder(files_.cache_dir, "cache", layout_.cache);
  }

  // A link in the private home leads to it.
  Status add_credentials() {
    for (const Credential& credential : files_.credentials) {
      const std::string destination = lexical(credential.destination);
      const bool private_home = is_below(layout_.home, machine_.scratch);
      const bool in_workdir = !files_.workdir.empty() && is_below(destination, files_.workdir);
      if (!private_home || in_workdir || !is_below(destination, caller_.home) ||
          destination == caller_.home)
        return fail("credential: " + credential.destination +
                        " is not below a home of the guest's own, and macOS has no mounts to show "
                        "it elsewhere",
                    0, "choose a destination below the home folder, and no --home");
      TRY(add(credential.source, Access::read, "credential"));
      scratch_.links.push_back(
          {layout_.home + destination.substr(caller_.home.size()), layout_.places.back().path});
    }
    return {};
  }

  bool is_granted(std::string_view path) const {
    return std::ranges::any_of(layout_.places, [&](const Place& place) {
      return place.from != "system" && place.from != "toolchain" && is_below(path, place.path);
    });
  }

  // What was found inside something else that is shown must not take rights away from it.
  void drop_covered() {
    std::vector<bool> covered;
    for (const Place& place : layout_.places)
      covered.push_back((place.from == "system" || place.from == "toolchain") &&
                        std::ranges::any_of(layout_.places, [&](const Place& other) {
                          return &other != &place && is_below(place.path, other.path) &&
                                 (place.path != other.path || &other < &place);
                        }));
    std::vector<Place> kept;
    for (std::size_t i = 0; i < covered.size(); ++i)
      if (!covered[i]) kept.push_back(std::move(layout_.places[i]));
    layout_.places = std::move(kept);
  }

  // ---- what is taken away ----
  // Before the grants in the order of places, so that one of the same path wins.
  Status add_personal() {
    std::vector<std::string> hidden;
    if (!layout_.whole_root)
      for (const char* path : seatbelt::system_secrets()) hidden.emplace_back(path);
    // Where an exception is asked for, all other names of what it is about must go.
    if (layout_.root_writable && has_exceptions()) hidden.emplace_back("/System/Volumes/Data");
    if (layout_.whole_root && !layout_.root_writable)
      for (const char* path : seatbelt::personal_folders()) hidden.emplace_back(path);
    if (layout_.whole_root && !files_.other_homes) hidden.emplace_back("/Users");
    if (layout_.whole_root && !files_.services) hidden.emplace_back("/var/run");
    if (layout_.whole_root && files_.private_tmp)
      for (const char* path : {"/tmp", "/var/folders"}) hidden.emplace_back(path);
    if (layout_.whole_root && files_.home == Home::temporary && !is_granted(home_))
      hidden.push_back(home_);
    std::vector<Place> grants = std::exchange(layout_.places, {});
    for (const std::string& path : hidden)
      if (const std::string real = TRY(trace(path)).path;
          std::ranges::find(layout_.places, real, &Place::path) == layout_.places.end())
        TRY(add(path, Access::hide, "profile"));
    std::ranges::move(grants, std::back_inserter(layout_.places));
    return {};
  }

  bool has_exceptions() const {
    return !files_.hide_globs.empty() || !files_.protect_globs.empty() ||
           std::ranges::any_of(files_.grants, [](const Grant& grant) {
             return grant.access == Access::hide || grant.access == Access::protect;
           });
  }

  Status add_exceptions() {
    for (Access access : {Access::hide, Access::protect})
      for (const Grant& grant : files_.grants)
        if (grant.access == access) TRY(take_away(grant.path, access, grant.from));
    for (const std::string& secret : secrets_) TRY(take_away(secret, Access::hide, "secret"));
    // Belljar's own: what decides about the next run, and tokens.
    for (const char* folder : {"/.config/belljar", "/.local/state/belljar"})
      TRY(take_away(caller_.home + folder, Access::hide, "belljar's own"));
    return {};
  }

  // No way leads out of a guest's tree here: whatever it is, it is taken away.
  Status take_away(const std::string& path, Access access, const std::string& from) {
    const seatbelt::Traced traced = TRY(trace(path));
    if (traced.path == "/")
      return fail(from + ": / is the whole file system", 0, "name what is meant in it");
    const Place* around = nullptr;
    for (const Place& place : layout_.places)
      if (is_below(traced.path, place.path) &&
          (around == nullptr || place.path.size() >= around->path.size()))
        around = &place;
    // A private home of the caller's own path is not what the profile means.
    if (from == "profile" && traced.path == home_) return {};
    const bool seen = around != nullptr ? around->access != Access::hide : layout_.whole_root;
    const bool writable =
        around != nullptr ? around->access == Access::write : layout_.root_writable;
    const bool own = from == "belljar's own";
    if (!seen || (access == Access::protect && !writable) || (own && around == nullptr)) return {};
    for (const std::string& link : traced.links)
      if (std::ranges::find(layout_.links, link, &Link::inside) == layout_.links.end())
        layout_.links.push_back({link, ""});
    layout_.places.push_back({.path = traced.path,
                              .inside = given_name(path, traced.path),
                              .access = access,
                              .from = from,
                              .fd = {}});
    return {};
  }

  const Files& files_;
  const Network network_;
  const Caller& caller_;
  const seatbelt::Machine& machine_;
  std::string home_;
  std::vector<std::string> guest_trees_;
  std::vector<std::string> secrets_;
  Layout layout_;
  Scratch scratch_;
};

}  // namespace

Result<MacFiles> make_mac_layout(const Policy& policy, const Caller& caller,
                                 const seatbelt::Machine& machine) {
  return MacLayout(policy, caller, machine).build();
}

}  // namespace belljar
