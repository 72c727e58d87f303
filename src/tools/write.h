// write: a whole file, new or in place of another.
#pragma once

#include <cstdint>
#include <string>

#include "tools/workspace.h"

namespace belljar::tools {

inline constexpr std::size_t kMaxWriteBytes = std::size_t{16} << 20;

struct WriteCall {
  std::string path;
  std::string content;
};

struct WriteResult {
  std::string text;  // what was done, for a model
  std::string path;  // inside, symlinks followed
  std::uint64_t bytes = 0;
  bool created = false;  // else another was replaced
};

Result<WriteResult> write(const Workspace& workspace, const WriteCall& call);

// A place where `tool` may put a file, parents made where `missing` says so.
Result<Place> find_for_writing(const Workspace& workspace, std::string_view tool,
                               std::string_view path, Workspace::Missing missing);

}  // namespace belljar::tools
