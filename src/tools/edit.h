// edit: one text in a file replaced by another. The text must be there exactly, and once, unless
// every one is meant: who edits by a text that stands elsewhere too has not said which.
#pragma once

#include <cstdint>
#include <string>

#include "tools/workspace.h"

namespace belljar::tools {

inline constexpr std::size_t kMaxEditBytes = std::size_t{16} << 20;  // before and after

struct EditCall {
  std::string path;
  std::string old_string;
  std::string new_string;
  bool replace_all = false;
};

struct EditResult {
  std::string text;  // what was done, for a model
  std::string path;  // inside, symlinks followed
  std::uint64_t replacements = 0;
  std::uint64_t line = 0;  // of the first
};

Result<EditResult> edit(const Workspace& workspace, const EditCall& call);

}  // namespace belljar::tools
