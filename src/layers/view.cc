#include "layers/view.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/child.h"
#include "layers/idmap.h"

namespace belljar::view {
namespace {

// Every bound tree: no set-id programs, no devices.
// Terminals are counted for the whole machine (kernel.pty.max, 4096 as a rule): so many are more
// than anybody opens at once, and few of those.
constexpr const char* kTerminals = "newinstance,ptmxmode=0666,mode=620,max=64";

constexpr std::uint64_t kTreeFlags = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;

// A symlink is a thing to mount as well, and to mount on: then it cannot be changed.
int open_tree(int at_fd, const char* path, unsigned flags) noexcept {
  return static_cast<int>(
      ::syscall(SYS_open_tree, at_fd, path,
                OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW | flags));
}

bool set_flags(int mount_fd, std::uint64_t flags, unsigned how) noexcept {
  mount_attr attr{.attr_set = flags, .attr_clr = 0, .propagation = 0, .userns_fd = 0};
  return ::syscall(SYS_mount_setattr, mount_fd, "", AT_EMPTY_PATH | how, &attr, sizeof attr) == 0;
}

// A clone is a peer of what it was cloned from: where that is shared, as systemd makes
// all of /, what is mounted in the jar would be mounted on the host as well, and stay;
// and what is mounted on the host would appear in the jar with none of its limits.
bool leave_peers(int mount_fd) noexcept {
  mount_attr attr{.attr_set = 0, .attr_clr = 0, .propagation = MS_PRIVATE, .userns_fd = 0};
  return ::syscall(SYS_mount_setattr, mount_fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr,
                   sizeof attr) == 0;
}

bool move_to(int mount_fd, int at_fd, const char* path, unsigned flags) noexcept {
  return ::syscall(SYS_move_mount, mount_fd, "", at_fd, path, MOVE_MOUNT_F_EMPTY_PATH | flags) == 0;
}

// A folder inside a granted tree can be swapped for a symlink between the plan
// and now, so such a target is opened without following any.
int open_inside(const char* path) noexcept {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how));
}

bool same_inode(int fd, const Op& op) noexcept {
  struct stat st{};
  return ::fstat(fd, &st) == 0 && st.st_dev == op.dev && st.st_ino == op.ino;
}

std::uint64_t flags_of(const Op& op) noexcept {
  if (op.device) return MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC;
  return op.writable ? kTreeFlags : kTreeFlags | MOUNT_ATTR_RDONLY;
}

// Builds the root, op by op. The current folder is the new root throughout.
class Builder {
 public:
  Builder(const Plan& plan, const Late& late, const Child& child)
      : plan_(plan), late_(late), trees_(late.trees), child_(child) {}

  void open_missing_trees() noexcept {
    for (std::size_t i = 0; i < plan_.ops.size(); ++i) {
      const Op& op = plan_.ops[i];
      if (op.step != Step::bind && op.step != Step::host_proc) continue;
      if (trees_[i] < 0) trees_[i] = open_tree(AT_FDCWD, op.source.c_str(), AT_RECURSIVE);
      child_.must(trees_[i] >= 0, "view: open_tree", op.source.c_str());
      // What is bound must be what the plan looked at.
      if (op.step == Step::bind && !same_inode(trees_[i], op))
        child_.die(ESTALE, "view: path changed since it was checked", op.source.c_str());
    }
  }

  // A new root, or the host's, of which this namespace has a copy already.
  void make_root() noexcept {
    if (plan_.whole_root) {
      limit_root();
      make_base("/proc");  // which the guest's own covers
      child_.must(::chdir("/") == 0, "view: enter root");
      return;
    }
    make_base(plan_.staging.c_str());
    child_.must(::mkdirat(base_fd_, "root", 0755) == 0, "view: mkdir root");
    Fd root(open_tree(base_fd_, "root", 0));
    child_.must(bool(root), "view: open_tree root");
    child_.must(move_to(root.get(), base_fd_, "root", 0), "view: mount root");
    child_.must(::fchdir(root.get()) == 0, "view: enter root");
  }

  void perform(std::size_t i) noexcept {
    const Op& op = plan_.ops[i];
    const char* target = op.target.c_str();
    switch (op.step) {
      case Step::make_dir:
        child_.must(::mkdir(target, op.mode) == 0 || errno == EEXIST, "view: mkdir", target);
        break;
      case Step::make_symlink:
        child_.must(::symlink(op.source.c_str(), target) == 0 || errno == EEXIST, "view: symlink",
                    target);
        break;
      case Step::make_file:
        make_file(op, AT_FDCWD, target);
        break;
      case Step::cover_file:
        cover_file(op);
        break;
      case Step::bind:
        child_.must(set_flags(trees_[i], flags_of(op), AT_RECURSIVE), "view: limit bind", target);
        attach(trees_[i], op);
        break;
      case Step::host_proc:
        attach(trees_[i], op);
        break;
      case Step::private_dir:
        private_dir(op);
        break;
      case Step::hide_dir:
        cover(op, "hidden");
        break;
      case Step::hide_file:
        cover(op, "hidden-file");
        break;
      case Step::mount_proc:
        mount_proc(op);
        break;
      case Step::mount_devpts:
        child_.must(::mount("devpts", target, "devpts", MS_NOSUID | MS_NOEXEC, kTerminals) == 0,
                    "view: mount devpts");
        break;
      case Step::lock_if_there:
        lock_if_there(op);
        break;
      case Step::hide_if_there:
        if (::access(target, F_OK) == 0) cover(op, op.directory ? "hidden" : "hidden-file");
        break;
      case Step::seal:
        seal(target);
        break;
    }
  }

  // Beyond this point the host's files cannot be reached by path.
  void become_root() noexcept {
    ::close(base_fd_);
    if (plan_.whole_root) return;
    child_.must(::syscall(SYS_pivot_root, ".", ".") == 0, "view: pivot_root");
    child_.must(::umount2(".", MNT_DETACH) == 0, "view: leave the host's root");
    child_.must(::chdir("/") == 0, "view: chdir /");
  }

 private:
  void limit_root() noexcept {
    mount_attr attr{.attr_set = plan_.keep_devices ? MOUNT_ATTR_NOSUID : kTreeFlags,
                    .attr_clr = 0,
                    .propagation = 0,
                    .userns_fd = 0};
    if (!plan_.root_writable) attr.attr_set |= MOUNT_ATTR_RDONLY;
    child_.must(::syscall(SYS_mount_setattr, AT_FDCWD, "/", AT_RECURSIVE, &attr, sizeof attr) == 0,
                "view: limit root");
  }

  // Where the files are that cover others.
  void make_base(const char* staging) noexcept {
    child_.must(
        ::mount("tmpfs", staging, "tmpfs", MS_NOSUID | MS_NODEV, plan_.tmpfs_options.c_str()) == 0,
        "view: mount tmpfs");
    base_fd_ = ::open(staging, O_PATH | O_DIRECTORY | O_CLOEXEC);
    child_.must(base_fd_ >= 0, "view: open tmpfs");
    child_.must(::mkdirat(base_fd_, "hidden", 0) == 0, "view: mkdir hidden");
    Fd hidden(::openat(base_fd_, "hidden-file", O_CREAT | O_WRONLY | O_CLOEXEC, 0));
    child_.must(bool(hidden), "view: make hidden-file");
  }

  void attach(int mount_fd, const Op& op) noexcept {
    const char* target = op.target.c_str();
    if (!op.in_tree) {
      child_.must(move_to(mount_fd, AT_FDCWD, target, 0), "view: mount on", target);
    } else {
      Fd found(open_inside(target));
      child_.must(bool(found), "view: open target", target);
      if (op.verify_target && !same_inode(found.get(), op))
        child_.die(ESTALE, "view: path changed since it was checked", target);
      child_.must(move_to(mount_fd, found.get(), "", MOVE_MOUNT_T_EMPTY_PATH), "view: mount on",
                  target);
    }
    ::close(mount_fd);
  }

  void make_file(const Op& op, int at_fd, const char* name) noexcept {
    Fd file(::openat(at_fd, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, op.mode));
    child_.must(bool(file), "view: make file", op.target.c_str());
    std::string_view line;
    if (op.append == Text::Append::user) line = late_.user;
    if (op.append == Text::Append::group) line = late_.group;
    for (std::string_view part : {std::string_view(op.source), line})
      child_.must(
          ::write(file.get(), part.data(), part.size()) == static_cast<ssize_t>(part.size()),
          "view: fill file", op.target.c_str());
  }

  void cover_file(const Op& op) noexcept {
    Name name = next_name();
    make_file(op, base_fd_, name.text);
    cover(op, name.text);
  }

  void private_dir(const Op& op) noexcept {
    Name name = next_name();
    child_.must(::mkdirat(base_fd_, name.text, 0700) == 0, "view: make private folder");
    // mkdir is subject to the umask, and /tmp must be 1777.
    child_.must(::fchmodat(base_fd_, name.text, op.mode, 0) == 0, "view: chmod private folder");
    int tree = open_tree(base_fd_, name.text, 0);
    child_.must(tree >= 0 && set_flags(tree, kTreeFlags, 0), "view: open private folder");
    attach(tree, op);
  }

  void cover(const Op& op, const char* with) noexcept {
    int tree = open_tree(base_fd_, with, 0);
    child_.must(tree >= 0 && set_flags(tree, kTreeFlags | MOUNT_ATTR_RDONLY, 0), "view: cover");
    attach(tree, op);
  }

  void mount_proc(const Op& op) noexcept {
    Fd context(static_cast<int>(::syscall(SYS_fsopen, "proc", FSOPEN_CLOEXEC)));
    child_.must(bool(context), "view: open proc");
    child_.must(
        ::syscall(SYS_fsconfig, context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) == 0,
        "view: create proc");
    Fd proc(static_cast<int>(::syscall(SYS_fsmount, context.get(), FSMOUNT_CLOEXEC,
                                       MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)));
    child_.must(bool(proc), "view: mount proc");
    child_.must(move_to(proc.get(), AT_FDCWD, op.target.c_str(), 0), "view: place proc");
  }

  void lock_if_there(const Op& op) noexcept {
    int tree = open_tree(AT_FDCWD, op.target.c_str(), AT_RECURSIVE);
    if (tree < 0 && errno == ENOENT) return;
    child_.must(tree >= 0 && set_flags(tree, MOUNT_ATTR_RDONLY, AT_RECURSIVE), "view: lock",
                op.target.c_str());
    attach(tree, op);
  }

  void seal(const char* target) noexcept {
    mount_attr attr{.attr_set = MOUNT_ATTR_RDONLY, .attr_clr = 0, .propagation = 0, .userns_fd = 0};
    child_.must(::syscall(SYS_mount_setattr, AT_FDCWD, target, 0, &attr, sizeof attr) == 0,
                "view: seal", target);
  }

  // Names of what the guest sees elsewhere; nobody sees the names themselves.
  struct Name {
    char text[4];
  };
  Name next_name() noexcept {
    int n = made_++;
    return {{'p', static_cast<char>('0' + n / 10), static_cast<char>('0' + n % 10), '\0'}};
  }

  const Plan& plan_;
  const Late& late_;
  std::span<int> trees_;
  const Child& child_;
  int base_fd_ = -1;
  int made_ = 0;
};

}  // namespace

Status open_trees(const Plan& plan, std::span<int> trees) {
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const Op& op = plan.ops[i];
    if (op.step != Step::bind) continue;
    trees[i] = open_tree(AT_FDCWD, op.source.c_str(), AT_RECURSIVE);
    if (trees[i] < 0) return fail("view: open_tree " + op.source, errno);
    if (!leave_peers(trees[i])) return fail("view: keep private " + op.source, errno);
  }
  return {};
}

Result<idmap::Maps> show_as_owned_by(const Plan& plan, uid_t jar_uid, std::span<const int> trees) {
  idmap::Maps maps(jar_uid);
  for (std::size_t i = 0; i < plan.ops.size(); ++i)
    if (plan.ops[i].owned) TRY(maps.show(trees[i], plan.ops[i].source));
  return maps;
}

void apply(const Plan& plan, const Late& late, const Child& child) noexcept {
  child.must(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0,
             "view: keep mounts private");
  const mode_t guests_umask = ::umask(022);
  Builder builder(plan, late, child);
  builder.open_missing_trees();
  builder.make_root();
  for (std::size_t i = 0; i < plan.ops.size(); ++i) builder.perform(i);
  builder.become_root();
  ::umask(guests_umask);
}

}  // namespace belljar::view
