// view: the guest's own root, made of a tmpfs and bind mounts.
//
// Defends against: reading, writing, listing, changing the metadata of, or even
// naming anything that was not granted; it is also what can take a part away
// again (hide, protect), which Landlock cannot. Does not do: stop `connect` to a
// unix socket inside a granted tree (a read-only mount does not forbid that).
// Needs Linux 5.12 (mount_setattr) and either root or a user namespace.
//
// One tmpfs holds everything that is made for the guest, so one size limits it:
// `root/` becomes the guest's root, `pN/` are its private folders, bound into
// place, so that they are writable while the root is not.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "layers/idmap.h"
#include "layers/layout.h"

namespace belljar {
class Child;
}

namespace belljar::view {

struct Support {
  bool mounts = true;
  bool proc = true;   // a new /proc can be mounted
  bool idmap = true;  // mounts can be shown under another owner (root only)
  std::string why_no_mounts;
  std::string why_no_proc;
  std::string why_no_idmap;
};

enum class Step {
  make_dir,
  make_symlink,  // text: where to
  make_file,     // text: content
  cover_file,    // the same over a file of the host
  bind,          // a tree of the host onto `target`
  private_dir,   // an empty writable folder onto `target`
  hide_dir,      // an empty unreadable folder onto `target`
  hide_file,
  mount_proc,
  host_proc,  // bind the host's: only where a new one cannot be mounted
  mount_devpts,
  lock_if_there,  // make what is at `target` read-only, if it exists
  hide_if_there,
  seal,  // nothing can be added to the mount at `target` any more
};

struct Op {
  Step step;
  std::string target;  // inside, without the leading slash
  std::string source;  // bind: on the host. symlink, file: the text
  Text::Append append = Text::Append::nothing;
  unsigned mode = 0755;
  bool writable = false;
  bool device = false;
  bool owned = false;
  bool in_tree = false;        // the target lies in a tree of the host: no symlink is followed
  bool verify_target = false;  // and it must be this inode
  bool directory = true;
  dev_t dev = 0;
  ino_t ino = 0;
};

struct Plan {
  std::vector<Op> ops;  // in order
  bool whole_root = false;
  bool root_writable = false;
  bool keep_devices = false;  // with whole_root: the host's /dev stays usable
  std::string staging;        // an existing folder that nobody needs while we build
  std::string tmpfs_options;
};

// `workdir`: where the caller's files are, since idmapping depends on the file system.
Support probe(const std::string& workdir);
// `tmpfs_mb`: how much the private folders may hold; 0 is the kernel's default.
Plan resolve(const Layout& layout, const Support& host, std::uint64_t tmpfs_mb);

// As root the parent clones the trees, since it alone may show them under the
// jar's uid. `trees` has one slot per op.
Status open_trees(const Plan& plan, std::span<int> trees);
Result<idmap::Maps> show_as_owned_by(const Plan& plan, uid_t jar_uid, std::span<const int> trees);

// What is known only once the jar has a pid.
struct Late {
  std::span<int> trees;   // opened by the parent, or -1: the child must
  std::string_view user;  // lines for /etc/passwd and /etc/group
  std::string_view group;
};

// Leaves the process in the new root.
void apply(const Plan& plan, const Late& late, const Child& child) noexcept;

}  // namespace belljar::view
