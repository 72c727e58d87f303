// The view's parent side: what can be mounted here, and the list of operations.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/probe.h"
#include "layers/identity.h"
#include "layers/idmap.h"
#include "layers/view.h"

namespace belljar::view {
namespace {

// Read-only: switches of the kernel. Hidden: memory, keys and timers of others.
constexpr const char* kLockedProc[] = {"proc/sys", "proc/sysrq-trigger", "proc/irq", "proc/bus",
                                       "proc/fs"};
constexpr const char* kHiddenProcFiles[] = {"proc/kcore", "proc/keys", "proc/timer_list"};
constexpr const char* kHiddenProcDirs[] = {"proc/acpi", "proc/scsi"};

std::string relative(std::string_view inside) { return std::string(inside.substr(1)); }

std::string_view parent_of(std::string_view path) {
  std::size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string_view::npos ? "/" : path.substr(0, slash);
}

class Writer {
 public:
  explicit Writer(const Layout& layout) : layout_(layout) {}

  // The mount that a path inside will land on, if it is a tree of the host.
  bool on_host_tree(std::string_view inside) const {
    bool host = layout_.whole_root;
    std::size_t deepest = 0;
    for (const auto& [mounted, is_host] : mounted_)
      if (is_below(inside, mounted) && mounted.size() >= deepest) {
        deepest = mounted.size();
        host = is_host;
      }
    return host;
  }

  // Whether that mount shows the host's paths at their own names.
  bool shows_own_paths(std::string_view inside) const {
    bool own = layout_.whole_root;
    std::size_t deepest = 0;
    for (const Place& place : layout_.places)
      if (place.inside != inside && is_below(inside, place.inside) &&
          place.inside.size() >= deepest) {
        deepest = place.inside.size();
        own = place.inside == place.path;
      }
    return own;
  }

  // Makes every folder above `inside` that is ours to make.
  void make_parents(std::string_view inside) {
    std::string_view parent = parent_of(inside);
    if (parent == "/" || on_host_tree(parent) || made_.contains(std::string(parent))) return;
    make_parents(parent);
    make_dir(parent);
  }
  void make_dir(std::string_view inside) {
    if (on_host_tree(inside) || is_mount(inside) || !made_.insert(std::string(inside)).second)
      return;
    add({.step = Step::make_dir, .target = relative(inside)});
  }
  void place_for(std::string_view inside, bool directory) {
    make_parents(inside);
    if (on_host_tree(inside)) return;
    if (directory)
      make_dir(inside);
    else if (made_.insert(std::string(inside)).second)
      add({.step = Step::make_file, .target = relative(inside), .mode = 0644});
  }
  void mount(std::string_view inside, Op op, bool is_host_tree) {
    op.target = relative(inside);
    op.in_tree = on_host_tree(inside);
    add(std::move(op));
    mounted_.emplace_back(inside, is_host_tree);
  }
  void add(Op op) { ops_.push_back(std::move(op)); }
  std::vector<Op> take() { return std::move(ops_); }

 private:
  bool is_mount(std::string_view inside) const {
    return std::ranges::any_of(mounted_, [&](const auto& m) { return m.first == inside; });
  }
  const Layout& layout_;
  std::vector<Op> ops_;
  std::vector<std::pair<std::string, bool>> mounted_;
  std::set<std::string> made_;
};

void add_place(Writer& writer, const Place& place) {
  // A path taken away again is the very one the plan looked at, wherever it shows.
  const bool same_file = (place.inside == place.path && writer.shows_own_paths(place.inside)) ||
                         place.pin || place.access == Access::hide ||
                         place.access == Access::protect;
  Op op{.step = Step::bind,
        .target = {},
        .source = place.path,
        .mode = 0755,
        .writable = place.access == Access::write,
        .device = place.device,
        .owned = place.owned,
        .verify_target = same_file,
        .directory = place.is_dir(),
        .dev = place.st.st_dev,
        .ino = place.st.st_ino};
  if (place.access == Access::hide) op.step = place.is_dir() ? Step::hide_dir : Step::hide_file;
  writer.place_for(place.inside, place.is_dir());
  writer.mount(place.inside, std::move(op), place.access != Access::hide);
}

void add_private_dir(Writer& writer, const PrivateDir& dir) {
  writer.place_for(dir.inside, true);
  writer.mount(dir.inside, {.step = Step::private_dir, .mode = dir.mode}, false);
}

void add_proc(Writer& writer, const Support& host) {
  writer.place_for("/proc", true);
  if (!host.proc) {
    writer.mount("/proc", {.step = Step::host_proc, .source = "/proc"}, true);
    return;
  }
  writer.mount("/proc", {.step = Step::mount_proc}, true);
  for (const char* path : kLockedProc) writer.add({.step = Step::lock_if_there, .target = path});
  for (const char* path : kHiddenProcFiles)
    writer.add({.step = Step::hide_if_there, .target = path, .directory = false});
  for (const char* path : kHiddenProcDirs)
    writer.add({.step = Step::hide_if_there, .target = path});
}

void add_dev(Writer& writer, const Layout& layout) {
  if (layout.whole_root)
    add_private_dir(writer, {"/dev", 0755});
  else
    writer.make_dir("/dev");
  for (const Place& place : layout.places)
    if (place.device) add_place(writer, place);
  add_private_dir(writer, {"/dev/shm", 01777});
  writer.make_dir("/dev/pts");
  writer.mount("/dev/pts", {.step = Step::mount_devpts}, true);
  constexpr std::pair<const char*, const char*> kLinks[] = {{"dev/ptmx", "pts/ptmx"},
                                                            {"dev/fd", "/proc/self/fd"},
                                                            {"dev/stdin", "/proc/self/fd/0"},
                                                            {"dev/stdout", "/proc/self/fd/1"},
                                                            {"dev/stderr", "/proc/self/fd/2"}};
  for (auto [link, text] : kLinks)
    writer.add({.step = Step::make_symlink, .target = link, .source = text});
  if (layout.whole_root) writer.add({.step = Step::seal, .target = "dev"});
}

std::string find_staging() {
  for (const char* dir : {"/tmp", "/mnt", "/usr"}) {
    struct stat st{};
    if (::lstat(dir, &st) == 0 && S_ISDIR(st.st_mode)) return dir;
  }
  return "/";
}

int in_new_namespaces(const std::function<int()>& then) {
  int flags = CLONE_NEWNS | CLONE_NEWPID;
  if (::geteuid() != 0) flags |= CLONE_NEWUSER;
  if (::syscall(SYS_unshare, flags) < 0) return errno;
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) < 0) return errno;
  return then();
}

// /proc can be mounted only by a process inside the new pid namespace.
int mount_proc_in_grandchild() {
  pid_t pid = ::fork();
  if (pid < 0) return errno;
  if (pid == 0) ::_exit(::mount("proc", "/proc", "proc", MS_NOSUID, nullptr) == 0 ? 0 : errno);
  int status = 0;
  if (::waitpid(pid, &status, 0) < 0) return errno;
  return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

int show_as_somebody_elses(const std::string& path) {
  const Fd tree(static_cast<int>(
      ::syscall(SYS_open_tree, AT_FDCWD, path.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)));
  if (!tree) return errno;
  Status shown = idmap::Maps(identity::kFirstJarUid).show(tree.get(), path);
  return shown ? 0 : shown.error().err;
}

}  // namespace

Support probe(const std::string& workdir) {
  Support support;
  Tried mounts = try_in_child([] {
    return in_new_namespaces([] {
      return ::mount("tmpfs", find_staging().c_str(), "tmpfs", 0, nullptr) == 0 ? 0 : errno;
    });
  });
  support.mounts = mounts.ok();
  support.why_no_mounts = mounts.reason();
  Tried proc = try_in_child([] { return in_new_namespaces(mount_proc_in_grandchild); });
  support.proc = proc.ok();
  support.why_no_proc = proc.reason();
  if (::geteuid() == 0) {
    Tried idmap = try_in_child([&] { return show_as_somebody_elses(workdir); });
    support.idmap = idmap.ok();
    support.why_no_idmap = idmap.reason();
  }
  return support;
}

Plan resolve(const Layout& layout, const Support& host, std::uint64_t tmpfs_mb) {
  Writer writer(layout);
  // Parents come before children, so a shorter path is mounted before a longer
  // one whatever kind either is.
  struct Item {
    std::string_view inside;
    const Place* place;
    const PrivateDir* dir;
  };
  std::vector<Item> items;
  for (const Place& place : layout.places)
    if (!place.device || !layout.own_dev) items.push_back({place.inside, &place, nullptr});
  for (const PrivateDir& dir : layout.private_dirs) items.push_back({dir.inside, nullptr, &dir});
  std::ranges::stable_sort(items, {}, [](const Item& item) { return item.inside.size(); });

  for (const Item& item : items) {
    if (item.place != nullptr)
      add_place(writer, *item.place);
    else
      add_private_dir(writer, *item.dir);
  }
  for (const std::string& folder : layout.folders) writer.place_for(folder, true);
  for (const Link& link : layout.links) {
    if (writer.on_host_tree(link.inside)) continue;
    writer.make_parents(link.inside);
    writer.add({.step = Step::make_symlink, .target = relative(link.inside), .source = link.text});
  }
  for (const Text& text : layout.texts) {
    writer.make_parents(text.inside);
    writer.add({.step = writer.on_host_tree(text.inside) ? Step::cover_file : Step::make_file,
                .target = relative(text.inside),
                .source = text.content,
                .append = text.append,
                .mode = 0644});
  }
  add_proc(writer, host);
  if (layout.own_dev) add_dev(writer, layout);
  if (!layout.whole_root) writer.add({.step = Step::seal, .target = "."});

  Plan plan{.ops = writer.take(),
            .whole_root = layout.whole_root,
            .root_writable = layout.root_writable,
            .keep_devices = layout.whole_root && !layout.own_dev,
            .staging = find_staging(),
            .tmpfs_options = "mode=0755"};
  if (tmpfs_mb != 0) {
    plan.tmpfs_options += ",size=" + std::to_string(tmpfs_mb) + "m";
    // An inode takes about a kilobyte of kernel memory that no size counts.
    plan.tmpfs_options +=
        ",nr_inodes=" + std::to_string(std::max<std::uint64_t>(tmpfs_mb * 256, 4096));
  }
  return plan;
}

}  // namespace belljar::view
