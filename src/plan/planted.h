// Symlinks that a guest may have planted. A guest can write a symlink into every tree
// that it may write, for a later run, which names a path through it, to follow. So in
// such a tree a symlink that leads out of it is not followed.
//
// Does not know: trees that only earlier runs could write. The current folder stands for
// them, since it is where a run without -C works.
#pragma once

#include <string>
#include <vector>

#include "belljar/policy.h"
#include "plan/paths.h"

namespace belljar {

struct Caller;

class GuestTrees {
 public:
  GuestTrees() = default;
  GuestTrees(const Files& files, const Caller& caller, Tracer& tracer);

  bool lead_out(const Traced& traced) const { return tree_left_by(traced) != nullptr; }
  // An error that says where `given` leads. `from` is the key or flag that named it.
  Status check(const Traced& traced, std::string_view from, const std::string& given) const;

 private:
  const std::string* tree_left_by(const Traced& traced) const;

  std::string workdir_;
  std::vector<std::string> trees_;  // canonical, the workdir's among them
};

}  // namespace belljar
