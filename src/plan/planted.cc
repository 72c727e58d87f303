#include "plan/planted.h"

#include <algorithm>

#include "belljar/caller.h"

namespace belljar {

GuestTrees::GuestTrees(const Files& files, const Caller& caller, Tracer& tracer) {
  // Where all may be written, nothing leads to more.
  if (files.writes_everything && files.reads == Reads::everything) return;
  auto add = [&](const std::string& path) {
    if (path.empty()) return;
    Result<Traced> traced = tracer.trace(path);
    // What is not there holds no symlinks.
    if (traced && std::ranges::find(trees_, traced->path) == trees_.end())
      trees_.push_back(std::move(traced->path));
  };
  if (Result<Traced> workdir = tracer.trace(files.workdir)) workdir_ = workdir->path;
  for (const std::string* path :
       {&files.workdir, &files.home_dir, &files.cache_dir, &files.tmp_dir})
    add(*path);
  for (const Grant& grant : files.grants)
    if (grant.access == Access::write) add(grant.path);
  // A folder that holds the home is nobody's workdir by chance.
  Result<Traced> home = tracer.trace(caller.home);
  Result<Traced> cwd = tracer.trace(caller.cwd);
  if (home && cwd && !is_below(home->path, cwd->path)) add(caller.cwd);
}

const std::string* GuestTrees::tree_left_by(const Traced& traced) const {
  for (const Link& link : traced.links)
    for (const std::string& tree : trees_)
      if (is_below(link.inside, tree) && !is_below(traced.path, tree)) return &tree;
  return nullptr;
}

Status GuestTrees::check(const Traced& traced, std::string_view from,
                         const std::string& given) const {
  const std::string* tree = tree_left_by(traced);
  if (tree == nullptr) return {};
  return fail(std::string(from) + ": " + given + " leads out of " +
                  (*tree == workdir_ ? "the workdir" : *tree) +
                  ", where a guest may have planted a symlink, to " + traced.path,
              0, "if that is meant, name " + traced.path + " itself");
}

}  // namespace belljar
