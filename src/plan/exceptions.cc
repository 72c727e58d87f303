#include "plan/exceptions.h"

#include <sys/stat.h>

#include <algorithm>
#include <optional>

#include "plan/mount_table.h"

namespace belljar {
namespace {

// To hide or protect a part of what was asked for would look like all of it.
std::unexpected<Error> incomplete(const std::string& from, const std::string& path,
                                  const char* what) {
  return fail(from + ": " + path + " is too large, or not readable, to find all " + what +
                  ": the list would be incomplete",
              0, "name the folder or file that is meant");
}

class Exceptions {
 public:
  Exceptions(Layout& layout, const Policy& policy, Tracer& tracer, const std::string& home)
      : layout_(layout), policy_(policy), tracer_(tracer), home_(home) {}

  Status hide(const std::string& path, const std::string& from) {
    Result<Traced> traced = tracer_.trace(path);
    if (!traced) {
      const int err = traced.error().err;
      // What is not there needs no hiding. What we cannot look at may be there, and the
      // guest may be able to look at it: a mode is its own to change.
      if (err == ENOENT || err == ENOTDIR || from == "profile") return {};
      return fail(from + ": " + path + " cannot be looked at, so it cannot be hidden", err);
    }
    if (traced->path == home_ && from == "profile") return {};
    TRY(refuse_root(traced->path, from));
    TRY(refuse_proc(traced->path, from));
    TRY(keep_links(*traced, from));
    TRY(take_away(traced->path, traced->st, Access::hide, from));
    // A profile's are the system's, and too large to look for other names.
    if (from == "profile") return {};
    return take_other_names_away(*traced, Access::hide, from);
  }

  Status protect(const std::string& path, const std::string& from) {
    Result<Traced> traced = tracer_.trace(path);
    if (!traced) {
      const int err = traced.error().err;
      if (err != ENOENT && err != ENOTDIR)
        return fail(from + ": " + path + " cannot be looked at, so it cannot be protected", err);
      return complain(layout_, policy_,
                      from + ": " + path + " does not exist and cannot be protected", err);
    }
    TRY(refuse_root(traced->path, from));
    TRY(refuse_proc(traced->path, from));
    TRY(keep_links(*traced, from));
    TRY(take_away(traced->path, traced->st, Access::protect, from));
    return take_other_names_away(*traced, Access::protect, from);
  }

  // What one exception added, another may have made pointless: nothing is to be mounted
  // in what is hidden, and what is protected needs no pins, which would be writable.
  void drop_pointless() {
    auto pointless = [&](const Place& place) {
      const bool exception = place.access == Access::hide || place.access == Access::protect;
      if (!exception && !place.pin) return false;
      const Place* around = nullptr;
      for (const Place& other : layout_.places)
        if (&other != &place && !other.pin && is_below(place.inside, other.inside) &&
            (place.pin || other.inside.size() < place.inside.size()) &&
            (around == nullptr || other.inside.size() >= around->inside.size()))
          around = &other;
      if (around == nullptr) return false;
      return around->access == Access::hide || (place.pin && around->access == Access::protect);
    };
    std::vector<bool> drop;
    for (const Place& place : layout_.places) drop.push_back(pointless(place));
    std::vector<Place> kept;
    for (std::size_t i = 0; i < drop.size(); ++i)
      if (!drop[i]) kept.push_back(std::move(layout_.places[i]));
    layout_.places = std::move(kept);
  }

 private:
  static Status refuse_root(std::string_view path, const std::string& from) {
    if (path != "/") return {};
    return fail(from + ": / is the whole file system", 0, "name what is meant in it");
  }

  static Status refuse_proc(std::string_view path, const std::string& from) {
    if (!is_below(path, "/proc")) return {};
    return fail(from + ": " + std::string(path) + " cannot be taken away: /proc is the guest's own",
                0, "its processes are all it sees there, and what is dangerous is locked");
  }

  // One of the paths at which the guest sees something of the host.
  struct Sight {
    std::string inside;
    std::string tree;  // inside: that of the place that shows it
    bool writable;
    bool owned;
  };

  // A tree can be shown more than once (as the home, as /tmp, at its own path while the
  // workdir has another), and a part of it can be covered by something else.
  std::vector<Sight> sights(const std::string& path) const {
    std::vector<Sight> seen;
    for (const Place& place : layout_.places) {
      if (place.access == Access::hide || !is_below(path, place.path)) continue;
      std::string inside = (place.inside == "/" ? "" : place.inside) +
                           path.substr(place.path == "/" ? 0 : place.path.size());
      if (shown_at(inside) == &place)
        seen.push_back(
            {std::move(inside), place.inside, place.access == Access::write, place.owned});
    }
    if (layout_.whole_root && shown_at(path) == nullptr && !is_emptied(path, 0))
      seen.push_back({path, "/", layout_.root_writable, false});
    return seen;
  }

  // The place whose mount a path inside ends up in; null: none, or one of our own.
  const Place* shown_at(std::string_view inside) const {
    const Place* nearest = nullptr;
    for (const Place& place : layout_.places)
      if (is_below(inside, place.inside) &&
          (nearest == nullptr || place.inside.size() >= nearest->inside.size()))
        nearest = &place;
    const bool emptied = nearest != nullptr && is_emptied(inside, nearest->inside.size());
    return emptied ? nullptr : nearest;
  }
  bool is_emptied(std::string_view inside, std::size_t above) const {
    return std::ranges::any_of(layout_.private_dirs, [&](const PrivateDir& dir) {
      return dir.inside.size() >= above && is_below(inside, dir.inside);
    });
  }

  // A symlink on the way could be pointed elsewhere: now, to change what is protected, or
  // for the next run, which would hide what it points to then.
  Status keep_links(const Traced& traced, const std::string& from) {
    for (const Link& link : traced.links) {
      struct stat st{};
      if (::lstat(link.inside.c_str(), &st) < 0) continue;
      for (const Sight& sight : sights(link.inside)) {
        if (!sight.writable) continue;
        TRY(pin_above(link.inside, sight, from));
        add(link.inside, st, Access::protect, from, sight);
        layout_.places.back().pin = true;
      }
    }
    return {};
  }

  // Wherever it can be seen: at every path inside, of every path outside.
  Status take_away(const std::string& path, const struct stat& st, Access access,
                   const std::string& from) {
    TRY(take_away_at(path, st, access, from));
    if (from == "profile") return {};
    if (!mounts_) mounts_ = MountTable::read();
    for (const std::string& other : mounts_->other_paths(path)) {
      struct stat same{};
      if (::lstat(other.c_str(), &same) == 0) TRY(take_away_at(other, same, access, from));
    }
    return {};
  }

  Status take_away_at(const std::string& path, const struct stat& st, Access access,
                      const std::string& from) {
    for (const Sight& sight : sights(path)) {
      if (access == Access::protect && !sight.writable) continue;
      if (sight.writable) TRY(pin_above(path, sight, from));
      add(path, st, access, from, sight);
    }
    return {};
  }

  // Moving a folder above would take the mount along, and a new one could be put in its
  // place, or nothing, so that the next run finds nothing to hide. A mount point cannot be
  // moved, so each folder becomes one.
  Status pin_above(std::string above, Sight sight, const std::string& from) {
    for (;;) {
      above.resize(above.rfind('/'));
      sight.inside.resize(sight.inside.rfind('/'));
      if (above.empty() || sight.inside.size() <= sight.tree.size()) return {};
      if (std::ranges::find(layout_.places, sight.inside, &Place::inside) != layout_.places.end())
        return {};
      Traced traced = TRY(tracer_.trace(above));
      add(above, traced.st, Access::write, from, sight);
      layout_.places.back().pin = true;
    }
  }

  // The trees that a person granted: what is hard-linked elsewhere is the system's own.
  std::vector<std::string> granted_trees() const {
    std::vector<std::string> trees;
    for (const Place& place : layout_.places)
      if (place.is_dir() && place.from != "system" && place.from != "toolchain" && !place.pin &&
          (place.access == Access::read || place.access == Access::write) &&
          std::ranges::find(trees, place.path) == trees.end())
        trees.push_back(place.path);
    return trees;
  }

  // A file that can be read or written under another name is not hidden or protected.
  Status take_other_names_away(const Traced& traced, Access access, const std::string& from) {
    const std::vector<std::string> trees = granted_trees();
    std::vector<struct stat> files;
    if (S_ISREG(traced.st.st_mode) && traced.st.st_nlink > 1) files.push_back(traced.st);
    if (S_ISDIR(traced.st.st_mode) && !trees.empty()) {
      LinkedFiles linked = linked_files(traced.path);
      if (!linked.complete) return incomplete(from, traced.path, "other names of its files");
      for (const LinkedFiles::File& file : linked.files) files.push_back(file.st);
    }
    if (files.empty()) return {};
    for (const std::string& tree : trees) {
      LinkedFiles names = names_of(files, tree);
      for (const LinkedFiles::File& other : names.files)
        if (!is_below(other.path, traced.path)) TRY(take_away(other.path, other.st, access, from));
      if (!names.complete)
        TRY(complain(
            layout_, policy_,
            traced.path + " has other names, and " + tree + " is too large to find them all", 0));
    }
    return {};
  }

  void add(const std::string& path, const struct stat& st, Access access, const std::string& from,
           const Sight& sight) {
    layout_.places.push_back({.path = path,
                              .inside = sight.inside,
                              .access = access,
                              .from = from,
                              .fd = {},
                              .st = st,
                              .owned = sight.owned && access != Access::hide});
  }

  Layout& layout_;
  const Policy& policy_;
  Tracer& tracer_;
  const std::string& home_;
  std::optional<MountTable> mounts_;
};

// A name with wildcards may also be meant as it stands.
Result<std::vector<std::string>> matches(const std::string& pattern, const char* from) {
  Found found = expand_glob(pattern);
  if (!found.complete) return incomplete(from, pattern, "that match");
  if (std::ranges::find(found.paths, pattern) == found.paths.end() && trace(pattern))
    found.paths.push_back(pattern);
  return std::move(found.paths);
}

}  // namespace

Status add_exceptions(Layout& layout, const Policy& policy, Tracer& tracer, const std::string& home,
                      const Unnamed& unnamed) {
  const Files& files = policy.files;
  Exceptions exceptions(layout, policy, tracer, home);
  for (const Grant& grant : files.grants) {
    if (grant.access == Access::hide) TRY(exceptions.hide(grant.path, grant.from));
    if (grant.access == Access::protect) TRY(exceptions.protect(grant.path, grant.from));
  }
  for (const std::string& pattern : files.hide_globs)
    for (const std::string& path : TRY(matches(pattern, "hide")))
      TRY(exceptions.hide(path, "hide"));
  for (const std::string& pattern : files.protect_globs)
    for (const std::string& path : TRY(matches(pattern, "protect")))
      TRY(exceptions.protect(path, "protect"));
  for (const std::string& path : unnamed.hide) TRY(exceptions.hide(path, "secret"));
  for (const std::string& path : unnamed.protect) TRY(exceptions.protect(path, "belljar's own"));
  exceptions.drop_pointless();
  return {};
}

Status complain(Layout& layout, const Policy& policy, std::string what, int err) {
  if (policy.mode == Mode::on) return fail(std::move(what), err);
  layout.warnings.push_back(Error{std::move(what), err, {}}.message());
  return {};
}

}  // namespace belljar
