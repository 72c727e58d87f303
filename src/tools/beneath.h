// Beneath: single steps in a tree that a guest changes meanwhile.
#pragma once

#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <array>
#include <optional>
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

// Whose rights count for files.
struct Ids {
  uid_t uid = 0;
  gid_t gid = 0;
};
inline constexpr Ids kNobody{.uid = 65534, .gid = 65534};

// While it lives this thread uses files as somebody else, without capabilities or further groups;
// only for root, who would otherwise read and change what the guest may not. The kernel decides
// at each call, so nothing is between check and use. Of the other threads nothing changes. Not
// inside another one.
class AsGuest {
 public:
  explicit AsGuest(const std::optional<Ids>& guest);  // none: nothing changes
  AsGuest(const AsGuest&) = delete;
  AsGuest& operator=(const AsGuest&) = delete;
  ~AsGuest();

  // It cannot be done here, so nothing may be opened.
  bool failed() const { return failed_; }

 private:
  bool active_ = false;
  bool failed_ = false;
  // To be given back.
  std::vector<gid_t> groups_;
  std::array<__user_cap_data_struct, 2> capabilities_{};
};

}  // namespace belljar::tools
