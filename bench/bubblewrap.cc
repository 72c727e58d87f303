#include "bubblewrap.h"

#include <sys/mman.h>
#include <unistd.h>

#include <set>

namespace bench {
namespace {

using belljar::view::Op;
using belljar::view::Step;

class Writer {
 public:
  void add(std::initializer_list<std::string> words) {
    result.arguments.insert(result.arguments.end(), words);
  }

  void add_data(const char* option, const Op& op) {
    int fd = ::memfd_create("data", MFD_CLOEXEC);
    if (::write(fd, op.source.data(), op.source.size()) < 0) return;
    result.data_fds.push_back(fd);
    add({option, std::to_string(fd), "/" + op.target});
  }

  void add_op(const Op& op) {
    const std::string inside = "/" + op.target;
    // `--dev` makes all of it.
    if (inside == "/dev" || inside.starts_with("/dev/")) return;
    switch (op.step) {
      case Step::make_symlink:
        // A plan may name a link twice; bubblewrap would refuse the second.
        if (links_.insert(inside).second) add({"--symlink", op.source, inside});
        break;
      case Step::make_file:
        if (!op.source.empty()) add_data("--file", op);
        break;
      case Step::cover_file:
        add_data("--ro-bind-data", op);
        break;
      case Step::bind:
        add({op.writable ? "--bind" : "--ro-bind", op.source, inside});
        break;
      case Step::private_dir:
        add({"--tmpfs", inside});
        break;
      case Step::hide_dir:
        add({"--perms", "0000", "--tmpfs", inside});
        break;
      case Step::hide_file:
        add({"--ro-bind", "/dev/null", inside});
        break;
      case Step::mount_proc:
        add({"--proc", "/proc"});
        break;
      case Step::host_proc:
        add({"--ro-bind", "/proc", "/proc"});
        break;
      default:
        break;  // folders above a mount it makes itself, /proc it locks itself
    }
  }

  Bubblewrap result;

 private:
  std::set<std::string> links_;
};

}  // namespace

Bubblewrap bubblewrap_like(const belljar::Plan& plan, const std::vector<std::string>& command) {
  Writer writer;
  const belljar::view::Plan& view = *plan.view;
  writer.add({"bwrap", "--unshare-all", "--die-with-parent", "--cap-drop", "ALL"});
  if (!plan.net) writer.add({"--share-net"});
  if (view.whole_root)
    writer.add({view.keep_devices    ? "--dev-bind"
                : view.root_writable ? "--bind"
                                     : "--ro-bind",
                "/", "/"});
  for (const Op& op : view.ops) writer.add_op(op);
  if (plan.layout.own_dev) writer.add({"--dev", "/dev"});
  if (!view.whole_root) writer.add({"--remount-ro", "/"});
  writer.add({"--chdir", plan.layout.workdir, "--"});
  writer.result.arguments.insert(writer.result.arguments.end(), command.begin(), command.end());
  return std::move(writer.result);
}

}  // namespace bench
