#include "plan/exceptions.h"

#include <sys/stat.h>

#include <algorithm>
#include <climits>
#include <map>
#include <optional>

#include "plan/mount_table.h"
#include "plan/sights.h"
#include "plan/tree_search.h"

namespace belljar {
namespace {

// Each is a mount, and is compared with every other one.
constexpr std::size_t kMostPlaces = 2'000;

bool is_exception(const Place& place) {
  return place.access == Access::hide || place.access == Access::protect;
}

class Exceptions {
 public:
  Exceptions(Layout& layout, const Policy& policy, Tracer& tracer, const std::string& home)
      : layout_(layout), policy_(policy), tracer_(tracer), home_(home) {}

  Status hide(const std::string& path, const std::string& from) {
    Result<Traced> traced = tracer_.trace(path);
    if (!traced) {
      const int err = traced.error().err;
      if (err == ENOENT || err == ENOTDIR) return {};  // what is not there needs no hiding
      return not_seen(path, from, err, "hidden");
    }
    if (traced->path == home_ && from == "profile") return {};
    TRY(refuse_root(traced->path, from));
    TRY(refuse_proc(traced->path, from));
    TRY(keep_links(*traced, from));
    TRY(take_away(traced->path, traced->st, Access::hide, from));
    // A profile's are the system's, and too large to look for other names.
    if (from == "profile") return {};
    if (S_ISDIR(traced->st.st_mode)) hidden_.push_back(traced->path);
    return note_other_names(*traced, Access::hide, from);
  }

  Status protect(const std::string& path, const std::string& from) {
    Result<Traced> traced = tracer_.trace(path);
    if (!traced) {
      const int err = traced.error().err;
      if (err != ENOENT && err != ENOTDIR) return not_seen(path, from, err, "protected");
      return complain(layout_, policy_,
                      from + ": " + path + " does not exist and cannot be protected", err);
    }
    TRY(refuse_root(traced->path, from));
    TRY(refuse_proc(traced->path, from));
    TRY(keep_links(*traced, from));
    TRY(take_away(traced->path, traced->st, Access::protect, from));
    return note_other_names(*traced, Access::protect, from);
  }

  // The paths that match. A name with wildcards may also be meant as it stands.
  Result<std::vector<std::string>> matches(const std::string& pattern, const char* from) const {
    Result<std::vector<std::string>> found = expand_glob(pattern, hidden_);
    if (!found) return incomplete(from, "what matches " + pattern, found.error());
    if (std::ranges::find(*found, pattern) == found->end() && trace(pattern))
      found->push_back(pattern);
    return found;
  }

  // A file that can be read or written under another name is not hidden or protected. All are
  // looked for at once: there may be thousands.
  Status take_other_names_away() {
    if (linked_.empty()) return {};
    if (layout_.whole_root)
      TRY(complain(
          layout_, policy_,
          linked_.begin()->second.path + " has other names, which are not looked for in all of /",
          0));
    for (const std::string& tree : granted_trees()) {
      const Result<std::vector<LinkedFile>> files = linked_files(tree, hidden_);
      if (!files)
        return incomplete(linked_.begin()->second.from,
                          "other names of " + linked_.begin()->second.path, files.error());
      for (const LinkedFile& file : *files) {
        const auto wanted = linked_.find({file.st.st_dev, file.st.st_ino});
        if (wanted == linked_.end()) continue;
        const auto& [access, from, path] = wanted->second;
        if (!is_taken_away(file.path, access)) TRY(take_away(file.path, file.st, access, from));
      }
    }
    return {};
  }

  // What one exception added, another may have made pointless: nothing is to be mounted
  // in what is hidden, and what is protected needs no pins, which would be writable.
  void drop_pointless() {
    auto pointless = [&](const Place& place) {
      if (!is_exception(place) && !place.pin) return false;
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

  // What we cannot look at may be there, and the guest may be able to look at it: a mode is
  // its own to change.
  static std::unexpected<Error> not_seen(const std::string& path, const std::string& from, int err,
                                         const char* done) {
    const Error why = why_not_seen(path, err);
    return fail(from + ": " + shortened(path) + " cannot be " + done + ": " + why.what, why.err,
                why.hint);
  }

  // To hide or protect a part of what was asked for would look like all of it.
  static std::unexpected<Error> incomplete(const std::string& from, const std::string& what,
                                           const Error& why) {
    return fail(from + ": " + what + " cannot be found in full: " + why.what, why.err, why.hint);
  }

  // A symlink on the way could be pointed elsewhere: now, to change what is protected, or
  // for the next run, which would hide what it points to then.
  Status keep_links(const Traced& traced, const std::string& from) {
    for (const Link& link : traced.links) {
      struct stat st{};
      if (::lstat(link.inside.c_str(), &st) < 0) continue;
      for (const Sight& sight : sights(layout_, link.inside)) {
        if (!sight.writable) continue;
        TRY(pin_above(link.inside, sight, from));
        TRY(add(link.inside, st, Access::protect, from, sight));
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
    for (const Sight& sight : sights(layout_, path)) {
      if (access == Access::protect && !sight.writable) continue;
      if (std::max(path.size(), sight.inside.size()) >= PATH_MAX)
        return not_seen(path, from, ENAMETOOLONG, access == Access::hide ? "hidden" : "protected");
      if (sight.writable) TRY(pin_above(path, sight, from));
      TRY(add(path, st, access, from, sight));
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
      TRY(add(above, traced.st, Access::write, from, sight));
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

  Status note_other_names(const Traced& traced, Access access, const std::string& from) {
    if (S_ISREG(traced.st.st_mode) && traced.st.st_nlink > 1)
      note(traced.st, {access, from, traced.path});
    if (!S_ISDIR(traced.st.st_mode) || (granted_trees().empty() && !layout_.whole_root)) return {};
    const Result<OpenPart> inside = linked_files_but_closed(traced.path);
    if (!inside)
      return incomplete(from, "other names of the files in " + traced.path, inside.error());
    for (const LinkedFile& file : inside->files) note(file.st, {access, from, file.path});
    for (const std::string& folder : inside->closed)
      TRY(complain(layout_, policy_,
                   from + ": " + folder +
                       " is closed to you, so other names of the files in it are not known",
                   0));
    return {};
  }

  struct Linked {
    Access access;
    std::string from;
    std::string path;
  };
  void note(const struct stat& st, Linked file) {
    const auto [at, is_new] = linked_.try_emplace({st.st_dev, st.st_ino}, file);
    if (!is_new && file.access == Access::hide) at->second = std::move(file);
  }

  bool is_taken_away(const std::string& path, Access access) const {
    return std::ranges::any_of(layout_.places, [&](const Place& place) {
      return (place.access == Access::hide || place.access == access) && !place.pin &&
             is_below(path, place.path);
    });
  }

  Status add(const std::string& path, const struct stat& st, Access access, const std::string& from,
             const Sight& sight) {
    if (++added_ > kMostPlaces)
      return fail(from + ": more than " + std::to_string(kMostPlaces) +
                      " paths would be hidden or protected, counted up to " + shortened(path),
                  0, "name a folder that holds them");
    layout_.places.push_back({.path = path,
                              .inside = sight.inside,
                              .access = access,
                              .from = from,
                              .fd = {},
                              .st = st,
                              .owned = sight.owned && access != Access::hide});
    return {};
  }

  Layout& layout_;
  const Policy& policy_;
  Tracer& tracer_;
  const std::string& home_;
  std::optional<MountTable> mounts_;
  std::size_t added_ = 0;
  std::vector<std::string> hidden_;                        // folders, in which nothing is shown
  std::map<std::pair<dev_t, ino_t>, Linked> linked_ = {};  // files that have other names
};

}  // namespace

Status add_exceptions(Layout& layout, const Policy& policy, Tracer& tracer, const std::string& home,
                      const std::vector<std::string>& secret) {
  const Files& files = policy.files;
  Exceptions exceptions(layout, policy, tracer, home);
  for (const std::string& path : secret) TRY(exceptions.hide(path, "secret"));
  for (const Grant& grant : files.grants) {
    if (grant.access == Access::hide) TRY(exceptions.hide(grant.path, grant.from));
    if (grant.access == Access::protect) TRY(exceptions.protect(grant.path, grant.from));
  }
  for (const std::string& pattern : files.hide_globs)
    for (const std::string& path : TRY(exceptions.matches(pattern, "hide")))
      TRY(exceptions.hide(path, "hide"));
  for (const std::string& pattern : files.protect_globs)
    for (const std::string& path : TRY(exceptions.matches(pattern, "protect")))
      TRY(exceptions.protect(path, "protect"));
  TRY(exceptions.take_other_names_away());
  exceptions.drop_pointless();
  return {};
}

Status complain(Layout& layout, const Policy& policy, std::string what, int err) {
  if (policy.mode >= Mode::on) return fail(std::move(what), err);
  layout.warnings.push_back(Error{std::move(what), err, {}}.message());
  return {};
}

}  // namespace belljar
