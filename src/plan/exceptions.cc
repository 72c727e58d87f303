#include "plan/exceptions.h"

#include <sys/stat.h>

#include <algorithm>

namespace belljar {
namespace {

class Exceptions {
 public:
  Exceptions(Layout& layout, const Policy& policy, Tracer& tracer, const std::string& home)
      : layout_(layout), policy_(policy), tracer_(tracer), home_(home) {}

  Status hide(const std::string& path, const std::string& from) {
    Result<Traced> traced = tracer_.trace(path);
    if (!traced) return {};  // what is not there needs no hiding
    if (traced->path == home_ && from == "profile") return {};
    TRY(refuse_root(traced->path, from));
    if (!is_shown(traced->path)) return {};
    TRY(add(traced->path, traced->st, Access::hide, from));
    // The same file under another name is the same secret.
    return each_other_name(traced->path, traced->st, [&](const std::string& other) {
      return add(other, traced->st, Access::hide, from);
    });
  }

  Status protect(const std::string& path, const std::string& from) {
    Result<Traced> traced = tracer_.trace(path);
    if (!traced)
      return complain(layout_, policy_,
                      from + ": " + path + " does not exist and cannot be protected",
                      traced.error().err);
    TRY(refuse_root(traced->path, from));
    if (is_covered(traced->path)) return {};  // what is not there cannot be changed
    const bool hidden = std::ranges::any_of(layout_.places, [&](const Place& place) {
      return place.access == Access::hide && is_below(traced->path, place.path);
    });
    if (hidden) return {};  // what cannot be seen cannot be changed
    // A symlink on the way could be pointed elsewhere: it is protected itself.
    for (const Link& link : traced->links) {
      struct stat st{};
      if (!is_writable(link.inside) || ::lstat(link.inside.c_str(), &st) < 0) continue;
      TRY(pin_above(link.inside));
      TRY(add(link.inside, st, Access::protect, from));
      layout_.places.back().pin = true;
    }
    if (!is_writable(traced->path)) return {};
    TRY(pin_above(traced->path));
    TRY(add(traced->path, traced->st, Access::protect, from));
    // A file that can be written under another name is not protected.
    auto protect_other = [&](const std::string& other, const struct stat& st) -> Status {
      return add(other, st, Access::protect, from);
    };
    if (!S_ISDIR(traced->st.st_mode))
      return each_other_name(traced->path, traced->st, [&](const std::string& other) {
        return protect_other(other, traced->st);
      });
    for (const LinkedFile& file : linked_files(traced->path))
      TRY(each_other_name(file.path, file.st, [&](const std::string& other) -> Status {
        return is_below(other, traced->path) ? Status() : protect_other(other, file.st);
      }));
    return {};
  }

 private:
  // The place that shows a path of the host, if any does.
  const Place* shown_by(std::string_view path) const {
    const Place* nearest = nullptr;
    for (const Place& place : layout_.places)
      if (place.access != Access::hide && is_below(path, place.path) &&
          (nearest == nullptr || place.path.size() >= nearest->path.size()))
        nearest = &place;
    return nearest;
  }
  bool is_shown(std::string_view path) const {
    return (layout_.whole_root || shown_by(path) != nullptr) && !is_covered(path);
  }
  // Something of another path is shown where this one would be: --home=DIR over the home.
  bool is_covered(std::string_view path) const {
    const Place* shown = shown_by(path);
    const std::size_t depth = shown != nullptr ? shown->inside.size() : 0;
    std::string inside(path);
    if (shown != nullptr)
      inside = shown->inside + inside.substr(shown->path == "/" ? 0 : shown->path.size());
    return std::ranges::any_of(layout_.places, [&](const Place& place) {
      return place.inside != place.path && &place != shown && place.inside.size() > depth &&
             is_below(inside, place.inside);
    });
  }
  static Status refuse_root(std::string_view path, const std::string& from) {
    if (path != "/") return {};
    return fail(from + ": / is the whole file system", 0, "name what is meant in it");
  }
  bool is_writable(std::string_view path) const {
    const Place* shown = shown_by(path);
    return shown != nullptr ? shown->access == Access::write : layout_.root_writable;
  }
  bool is_place(std::string_view path) const {
    return std::ranges::any_of(layout_.places, [&](const Place& p) { return p.path == path; });
  }

  // Moving a folder above would take the mount along, and a new one could be put
  // in its place. A mount point cannot be moved, so each folder becomes one.
  Status pin_above(const std::string& path) {
    for (std::size_t slash = path.rfind('/'); slash != 0 && slash != path.npos;
         slash = path.rfind('/', slash - 1)) {
      const std::string above = path.substr(0, slash);
      if (is_place(above) || !is_writable(above)) return {};
      Traced traced = TRY(tracer_.trace(above));
      TRY(add(above, traced.st, Access::write, "protect"));
      layout_.places.back().pin = true;
    }
    return {};
  }

  // Hard links that a guest could use instead, in the trees a person granted.
  template <class F>
  Status each_other_name(const std::string& path, const struct stat& st, F&& f) {
    if (!S_ISREG(st.st_mode) || st.st_nlink < 2) return {};
    std::vector<std::string> trees;
    for (const Place& place : layout_.places)
      if (place.is_dir() && place.from != "system" && place.from != "toolchain" && !place.pin &&
          (place.access == Access::read || place.access == Access::write))
        trees.push_back(place.path);
    for (const std::string& tree : trees) {
      OtherNames names = other_names(st, tree);
      for (const std::string& other : names.paths)
        if (other != path && !is_place(other)) TRY(f(other));
      if (!names.complete)
        TRY(complain(layout_, policy_,
                     path + " has other names, and " + tree + " is too large to find them all", 0));
    }
    return {};
  }

  Status add(const std::string& path, const struct stat& st, Access access,
             const std::string& from) {
    const Place* shown = shown_by(path);
    Place place{.path = path, .inside = path, .access = access, .from = from, .fd = {}, .st = st};
    if (shown != nullptr) {
      place.inside = shown->inside + path.substr(shown->path == "/" ? 0 : shown->path.size());
      place.owned = shown->owned && access != Access::hide;
    }
    layout_.places.push_back(std::move(place));
    return {};
  }

  Layout& layout_;
  const Policy& policy_;
  Tracer& tracer_;
  const std::string& home_;
};

// A name with wildcards may also be meant as it stands.
std::vector<std::string> matches(const std::string& pattern) {
  std::vector<std::string> paths = expand_glob(pattern);
  if (std::ranges::find(paths, pattern) == paths.end() && trace(pattern)) paths.push_back(pattern);
  return paths;
}

}  // namespace

Status add_exceptions(Layout& layout, const Policy& policy, Tracer& tracer, const std::string& home,
                      const std::vector<std::string>& secrets) {
  const Files& files = policy.files;
  Exceptions exceptions(layout, policy, tracer, home);
  for (const Grant& grant : files.grants) {
    if (grant.access == Access::hide) TRY(exceptions.hide(grant.path, grant.from));
    if (grant.access == Access::protect) TRY(exceptions.protect(grant.path, grant.from));
  }
  for (const std::string& pattern : files.hide_globs)
    for (const std::string& path : matches(pattern)) TRY(exceptions.hide(path, "hide"));
  for (const std::string& pattern : files.protect_globs)
    for (const std::string& path : matches(pattern)) TRY(exceptions.protect(path, "protect"));
  for (const std::string& path : secrets) TRY(exceptions.hide(path, "secret"));
  return {};
}

Status complain(Layout& layout, const Policy& policy, std::string what, int err) {
  if (policy.mode == Mode::on) return fail(std::move(what), err);
  layout.warnings.push_back(Error{std::move(what), err, {}}.message());
  return {};
}

}  // namespace belljar
