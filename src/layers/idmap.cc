#include "layers/idmap.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>

#include "base/clone.h"
#include "base/syscall.h"

namespace belljar::idmap {
namespace {

// Ends with the thread that started it, if that is killed before it could end this.
[[noreturn]] void wait_for_the_end(void* parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);  // cannot fail: it is a signal
  if (::getppid() != reinterpret_cast<std::intptr_t>(parent)) ::_exit(1);  // it was quicker
  for (;;) ::pause();
}

Status write_map(const std::string& path, id_t inside, id_t outside) {
  std::string text = std::to_string(inside) + " " + std::to_string(outside) + " 1";
  Fd file = TRY(open_path(path.c_str(), O_WRONLY));
  if (::write(file.get(), text.data(), text.size()) < 0) return fail("write " + path, errno);
  return {};
}

}  // namespace

Result<Holder> Holder::start() {
  Holder holder;
  clone_args args{};
  args.flags = CLONE_NEWUSER;
  args.stack = reinterpret_cast<std::uint64_t>(holder.stack_->data());
  args.stack_size = holder.stack_->size();
  holder.pid_ = TRY(clone_sharing_memory(args, wait_for_the_end,
                                         reinterpret_cast<void*>(std::intptr_t{::getpid()})));
  return holder;
}

Holder::~Holder() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);  // it is our unreaped child, so this cannot fail
  retry([&] { return ::waitpid(pid_, nullptr, __WALL); });
}

Result<int> Maps::namespace_for(uid_t uid, gid_t gid) {
  for (const Map& map : maps_)
    if (map.uid == uid && map.gid == gid) return map.user_namespace.get();
  Holder holder = TRY(Holder::start());
  TRY(write_map(holder.proc("/uid_map"), uid, jar_uid_));
  TRY(write_map(holder.proc("/gid_map"), gid, jar_uid_));
  Fd ns = TRY(open_path(holder.proc("/ns/user").c_str(), O_RDONLY));
  maps_.push_back({uid, gid, std::move(holder), std::move(ns)});
  return maps_.back().user_namespace.get();
}

Status Maps::show(int tree_fd, const std::string& path) {
  struct stat st{};
  if (::fstat(tree_fd, &st) < 0) return fail("idmap: stat " + path, errno);
  int ns_fd = TRY(namespace_for(st.st_uid, st.st_gid));
  mount_attr attr{.attr_set = MOUNT_ATTR_IDMAP,
                  .attr_clr = 0,
                  .propagation = 0,
                  .userns_fd = static_cast<__u64>(ns_fd)};
  if (::syscall(SYS_mount_setattr, tree_fd, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0)
    return fail("idmap: show " + path + " as the guest's", errno,
                "this file system cannot be idmapped; run belljar as an ordinary user");
  return {};
}

}  // namespace belljar::idmap
