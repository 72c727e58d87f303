// What of this host a plan for a Mac depends on. Nothing here is macOS's alone, so it runs in
// the tests too.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "layers/seatbelt_startup.h"
#include "plan/macos.h"
#include "plan/toolchains.h"

namespace belljar {
namespace {

constexpr int kMaxLinks = 32;

class Observer {
 public:
  Observer() : machine_(seatbelt::plain_mac()) {}

  // Notes every link on the way, and those that they lead to.
  void look_along(const std::string& path) {
    std::string rest = path;
    std::string here;
    std::size_t at = 0;
    for (int links = 0; (at = rest.find_first_not_of('/', at)) != rest.npos;) {
      const std::size_t end = std::min(rest.find('/', at), rest.size());
      const std::string name = rest.substr(at, end - at);
      at = end;
      if (name == ".") continue;
      if (name == "..") {
        here.resize(std::min(here.size(), here.rfind('/')));
        continue;
      }
      const std::string next = here + "/" + name;
      const std::string text = link_at(next);
      if (text.empty()) {
        here = next;
        continue;
      }
      if (++links > kMaxLinks) return;  // tracing it will say so
      if (text.starts_with('/')) here.clear();
      rest = text + rest.substr(at);
      at = 0;
    }
  }

  void look_for(const std::string& folder) {
    struct stat st{};
    if (::stat(folder.c_str(), &st) == 0) machine_.folders.push_back(folder);
  }

  seatbelt::Machine take() { return std::move(machine_); }

 private:
  // Empty: it is no link, or not there. Noted is the path that it would have on a Mac, where
  // /tmp is a link itself.
  std::string link_at(const std::string& path) {
    std::string text(4096, '\0');
    const ssize_t size = ::readlink(path.c_str(), text.data(), text.size());
    if (size <= 0) return {};
    text.resize(static_cast<std::size_t>(size));
    auto is_known = [&](const std::string& place) {
      return std::ranges::find(machine_.links, place, &seatbelt::Symlink::path) !=
             machine_.links.end();
    };
    Result<seatbelt::Traced> place = seatbelt::trace(plain_, path);
    if (place && !is_known(path) && !is_known(place->path))
      machine_.links.push_back({place->path, text});
    return text;
  }

  const seatbelt::Machine plain_ = seatbelt::plain_mac();
  seatbelt::Machine machine_;
};

// What the system has at the same path everywhere is a Mac's to know, and not this host's.
bool is_systems(std::string_view path) {
  return std::ranges::any_of(seatbelt::system_folders(Reads::system),
                             [&](const char* folder) { return is_below(path, folder); });
}

}  // namespace

seatbelt::Machine observe_mac(const Policy& policy, const Caller& caller) {
  const Files& files = policy.files;
  std::vector<std::string> named = {caller.home,    caller.cwd,      files.workdir,
                                    files.home_dir, files.cache_dir, files.tmp_dir};
  for (const Grant& grant : files.grants) named.push_back(grant.path);
  for (const Credential& credential : files.credentials) named.push_back(credential.source);
  for (const std::vector<std::string>* globs : {&files.hide_globs, &files.protect_globs})
    for (const std::string& glob : *globs)
      named.push_back(glob.substr(0, glob.rfind('/', glob.find_first_of("*?["))));
  Observer observer;
  for (const std::string& path : named)
    if (!path.empty() && !is_systems(path)) observer.look_along(path);
  if (!files.toolchains) return observer.take();
  ToolchainNames names = toolchain_names(caller);
  for (const std::string& program : names.programs) {
    names.folders.push_back(program);
    names.folders.push_back(program.substr(0, program.rfind('/')) + "/lib");
  }
  for (const char* folder : {"/Library/Python", "/Library/pnpm"})
    names.folders.push_back(caller.home + folder);
  for (const std::string& folder : names.folders) {
    if (is_systems(folder)) continue;
    observer.look_along(folder);
    observer.look_for(folder);
  }
  for (const std::string& secret : names.secrets) observer.look_along(secret);
  return observer.take();
}

}  // namespace belljar
