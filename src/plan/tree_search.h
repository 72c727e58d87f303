// Searching trees in which guests have been: for the paths that match a pattern, and for
// files with more than one name. A search finds all of it or fails, because whoever hides a
// part of what was asked for seems to hide all of it.
//
// Every folder is opened in its parent's descriptor and no symlink is followed. So a folder
// that is replaced meanwhile leads nowhere else, and a path longer than PATH_MAX is searched
// like any other. Only "not there" is no failure: names come and go in a tree that is in use,
// and a guest under the same rules cannot move what they cover (see Exceptions).
#pragma once

#include <sys/stat.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace belljar {

struct SearchLimits {
  std::size_t entries = 200'000;  // that are looked at
  std::size_t depth = 256;        // folders within one another, each an open descriptor
};

// The existing paths that match. `*`, `?` and `[…]` stay within a name, `**` is any number of
// folders. Nothing is looked for in `hidden` folders: there is no need to hide it twice.
Result<std::vector<std::string>> expand_glob(std::string_view pattern,
                                             std::span<const std::string> hidden = {},
                                             SearchLimits limits = {});

struct LinkedFile {
  std::string path;
  struct stat st{};
};

// The files of a tree that have more than one name.
Result<std::vector<LinkedFile>> linked_files(const std::string& tree,
                                             std::span<const std::string> hidden = {},
                                             SearchLimits limits = {});

// The same, but for the folders of other people that are closed to the caller. They are closed
// to the guest as well, which has no more rights and cannot change their modes.
struct OpenPart {
  std::vector<LinkedFile> files;
  std::vector<std::string> closed;
};
Result<OpenPart> linked_files_but_closed(const std::string& tree, SearchLimits limits = {});

// A path for a message: a guest may have made it longer than a person reads.
std::string shortened(const std::string& path);

// Why a path could not be looked at, and what a person can do about it.
Error why_not_seen(const std::string& path, int err);

}  // namespace belljar
