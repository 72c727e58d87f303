#include "plan/toolchains.h"

#include <dirent.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "layers/layout.h"
#include "plan/paths.h"
#include "plan/plan.h"
#include "plan/planted.h"
#include "plan/toolchain_names.h"

namespace belljar {
namespace {

std::string_view variable(const Caller& caller, std::string_view name) {
  for (const std::string& entry : caller.environment)
    if (entry.starts_with(name) && entry.size() > name.size() && entry[name.size()] == '=')
      return std::string_view(entry).substr(name.size() + 1);
  return {};
}

class Finder {
 public:
  Finder(const Caller& caller, Tracer& tracer, const GuestTrees& guest_trees)
      : caller_(caller), tracer_(tracer), guest_trees_(guest_trees) {
    Result<Traced> home = tracer_.trace(caller_.home);
    home_ = home ? home->path : caller_.home;
  }

  void add(std::string path) {
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    if (!path.starts_with('/')) return;
    Result<Traced> traced = tracer_.trace(path);
    if (traced && !is_private(traced->path) && !guest_trees_.lead_out(*traced))
      found_.folders.push_back(std::move(path));
  }

  void add_each(std::string_view list, const char* below = "") {
    while (!list.empty()) {
      std::string_view path = list.substr(0, list.find(':'));
      list.remove_prefix(std::min(path.size() + 1, list.size()));
      if (!path.empty()) add(std::string(path) + below);
    }
  }

  // A program in X/bin needs X/lib; ~/.local is a home's own and not a prefix.
  void add_program_folder(std::string_view path) {
    while (path.ends_with('/') && path.size() > 1) path.remove_suffix(1);
    std::size_t slash = path.rfind('/');
    std::string prefix(path.substr(0, slash == path.npos ? 0 : slash));
    if (path.ends_with("/bin") && prefix != caller_.home + "/.local" && exists(prefix + "/lib"))
      add(prefix);
    add(std::string(path));
  }

  // A symlink in ~/.local/bin leads to where its program really lives.
  void add_targets(const std::string& folder) {
    std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(folder.c_str()), ::closedir);
    while (const dirent* entry = dir ? ::readdir(dir.get()) : nullptr) {
      if (entry->d_type != DT_LNK) continue;
      Result<Traced> target = tracer_.trace(folder + "/" + entry->d_name);
      if (target && !guest_trees_.lead_out(*target))
        add_program_folder(target->path.substr(0, target->path.rfind('/')));
    }
  }

  Toolchains take() {
    for (const char* secret : kSecrets) add_secret(caller_.home + "/" + secret);
    if (std::string_view cargo = variable(caller_, "CARGO_HOME"); !cargo.empty())
      for (const char* file : {"/credentials", "/credentials.toml"})
        add_secret(std::string(cargo) + file);
    return std::move(found_);
  }

 private:
  bool exists(const std::string& path) { return tracer_.trace(path).has_value(); }

  void add_secret(const std::string& path) {
    if (Result<Traced> traced = tracer_.trace(path)) found_.secrets.push_back(traced->path);
  }

  // The home itself, what is above it, and the folders with its keys.
  bool is_private(const std::string& real) const {
    if (real == "/" || is_below(home_, real)) return true;
    return std::ranges::any_of(
        kKeyStores, [&](const char* store) { return is_below(real, home_ + "/" + store); });
  }

  const Caller& caller_;
  Tracer& tracer_;
  const GuestTrees& guest_trees_;
  std::string home_;
  Toolchains found_;
};

}  // namespace

Toolchains find_toolchains(const Caller& caller, Tracer& tracer, const GuestTrees& guest_trees) {
  Finder finder(caller, tracer, guest_trees);
  for (const char* name : kLocations) finder.add(std::string(variable(caller, name)));
  for (const char* name : kSearchPaths) finder.add_each(variable(caller, name));
  // Its tools and the modules it has fetched, but not src, where a person's own code may be.
  for (const char* part : {"/bin", "/pkg"}) finder.add_each(variable(caller, "GOPATH"), part);
  for (const char* folder : kHomeFolders) finder.add(caller.home + "/" + folder);
  std::string_view path = variable(caller, "PATH");
  while (!path.empty()) {
    std::string_view folder = path.substr(0, path.find(':'));
    path.remove_prefix(std::min(folder.size() + 1, path.size()));
    finder.add_program_folder(folder);
  }
  finder.add_targets(caller.home + "/.local/bin");
  return finder.take();
}

}  // namespace belljar
