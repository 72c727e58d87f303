// Beneath: single steps in a tree that a guest changes meanwhile.
#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "tools/failure.h"

namespace belljar::tools {

// One name in a folder, never through a symlink; errno if there is no descriptor. With O_PATH a
// symlink is opened itself.
Fd open_name(int folder_fd, const std::string& name, int flags);

// The file behind an O_PATH descriptor, whatever has become of its name.
Fd open_again(int path_fd, int flags);

Result<std::string> read_link(int path_fd);

// A descriptor of the caller's own.
Result<Fd> duplicate(int fd);

// While it lives this thread opens files as somebody without any rights of its own; only for
// root, who would otherwise read what no guest may. Of the other threads nothing changes.
class AsOthers {
 public:
  explicit AsOthers(bool really);
  AsOthers(const AsOthers&) = delete;
  AsOthers& operator=(const AsOthers&) = delete;
  ~AsOthers();

  // It cannot be done here, so nothing may be opened.
  bool failed() const { return failed_; }

 private:
  bool active_ = false;
  bool failed_ = false;
  std::vector<gid_t> groups_;  // to be given back
};

}  // namespace belljar::tools
