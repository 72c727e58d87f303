#include "plan/paths.h"

#include <dirent.h>
#include <fnmatch.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <span>

namespace belljar {
namespace {

constexpr int kMaxLinks = 40;  // the kernel's own limit

std::vector<std::string> split(std::string_view path) {
  std::vector<std::string> names;
  while (!path.empty()) {
    std::string_view name = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(name.size() + 1, path.size()));
    if (!name.empty() && name != ".") names.emplace_back(name);
  }
  return names;
}

std::string join(const std::string& folder, std::string_view name) {
  return (folder == "/" ? "" : folder) + "/" + std::string(name);
}

Result<std::string> read_link(const std::string& path) {
  std::string text(4096, '\0');
  ssize_t n = ::readlink(path.c_str(), text.data(), text.size());
  if (n < 0) return fail("readlink " + path, errno);
  text.resize(static_cast<std::size_t>(n));
  return text;
}

// Whether the guest could look where we cannot: it may change the mode of what is ours.
bool could_be_opened_up(const std::string& folder) {
  struct stat st{};
  return errno == EACCES && ::lstat(folder.c_str(), &st) == 0 && st.st_uid == ::geteuid();
}

// False: there may be entries that were not seen.
template <class F>
bool each_entry(const std::string& folder, F&& f) {
  std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(folder.c_str()), ::closedir);
  if (!dir) return !could_be_opened_up(folder);
  while (const dirent* entry = ::readdir(dir.get())) {
    std::string_view name = entry->d_name;
    if (name != "." && name != "..") f(name, entry->d_type);
  }
  return true;
}

bool is_dir(const std::string& path, unsigned char type) {
  if (type != DT_UNKNOWN) return type == DT_DIR;
  struct stat st{};
  return ::lstat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}

class Globber {
 public:
  explicit Globber(std::size_t limit) : limit_(limit) {}

  void match(const std::string& folder, std::span<const std::string> names) {
    if (names.empty()) {
      found.paths.push_back(folder);
      return;
    }
    if (names[0] == "**") {
      match(folder, names.subspan(1));
      look_into(folder, [&](std::string_view name, unsigned char type) {
        std::string path = join(folder, name);
        if (is_dir(path, type)) match(path, names);
      });
      return;
    }
    if (names[0].find_first_of("*?[") == std::string::npos) {
      std::string path = join(folder, names[0]);
      struct stat st{};
      if (::lstat(path.c_str(), &st) == 0)
        match(path, names.subspan(1));
      else if (could_be_opened_up(folder))
        found.complete = false;
      return;
    }
    look_into(folder, [&](std::string_view name, unsigned char type) {
      if (::fnmatch(names[0].c_str(), std::string(name).c_str(), 0) != 0) return;
      std::string path = join(folder, name);
      if (names.size() == 1 || is_dir(path, type)) match(path, names.subspan(1));
    });
  }
  Found found;

 private:
  template <class F>
  void look_into(const std::string& folder, F&& f) {
    found.complete &= each_entry(folder, [&](std::string_view name, unsigned char type) {
      if (++looked_at_ < limit_)
        f(name, type);
      else
        found.complete = false;
    });
  }
  std::size_t limit_;
  std::size_t looked_at_ = 0;
};

}  // namespace

const Tracer::Seen& Tracer::look(const std::string& path) {
  auto [at, is_new] = seen_.try_emplace(path);
  Seen& seen = at->second;
  if (!is_new) return seen;
  if (::lstat(path.c_str(), &seen.st) < 0) {
    seen.err = errno;
  } else if (S_ISLNK(seen.st.st_mode)) {
    Result<std::string> text = read_link(path);
    if (text)
      seen.link = std::move(*text);
    else
      seen.err = text.error().err;
  }
  return seen;
}

Result<Traced> Tracer::trace(std::string_view path) {
  Traced traced{.path = "/", .links = {}, .st = {}};
  std::string rest(path);
  std::size_t at = 0;
  while ((at = rest.find_first_not_of('/', at)) != rest.npos) {
    const std::size_t end = std::min(rest.find('/', at), rest.size());
    const std::string name = rest.substr(at, end - at);
    at = end;
    if (name == ".") continue;
    if (name == "..") {
      traced.path.resize(std::max<std::size_t>(traced.path.rfind('/'), 1));
      continue;
    }
    std::string next = join(traced.path, name);
    const Seen& seen = look(next);
    if (seen.err != 0) return fail("stat " + std::string(path), seen.err);
    if (!S_ISLNK(seen.st.st_mode)) {
      if (!S_ISDIR(seen.st.st_mode) && rest.find_first_not_of('/', at) != rest.npos)
        return fail("stat " + std::string(path), ENOTDIR);
      traced.path = std::move(next);
      continue;
    }
    if (traced.links.size() == kMaxLinks) return fail("stat " + std::string(path), ELOOP);
    rest = seen.link + rest.substr(at);
    at = 0;
    if (seen.link.starts_with('/')) traced.path = "/";
    traced.links.push_back({std::move(next), seen.link});
  }
  traced.st = look(traced.path).st;
  return traced;
}

Result<Traced> trace(std::string_view path) { return Tracer().trace(path); }

namespace {

// One name after the other.
Fd walk_without_symlinks(const std::string& path) {
  const std::vector<std::string> names = split(path);
  Fd fd(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (std::size_t i = 0; fd && i < names.size(); ++i) {
    const int folder = i + 1 < names.size() ? O_DIRECTORY : 0;
    fd = Fd(::openat(fd.get(), names[i].c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC | folder));
  }
  return fd;
}

Fd open_without_symlinks(const std::string& path) {
  open_how how{};
  how.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  how.resolve = RESOLVE_NO_SYMLINKS;
  Fd fd(static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how)));
  // The filters of containers and jars refuse the call.
  if (!fd && (errno == ENOSYS || errno == EPERM)) return walk_without_symlinks(path);
  return fd;
}

}  // namespace

Result<Fd> open_traced(const std::string& path, const struct stat& st) {
  Fd fd = open_without_symlinks(path);
  struct stat now{};
  const bool opened = fd && ::fstat(fd.get(), &now) == 0;
  if (!opened && errno != ELOOP && errno != ENOTDIR) return fail("open " + path, errno);
  if (!opened || now.st_dev != st.st_dev || now.st_ino != st.st_ino)
    return fail("open " + path + ": it was replaced meanwhile", ESTALE, "try again");
  return fd;
}

Found expand_glob(std::string_view pattern, std::size_t limit) {
  std::vector<std::string> names = split(pattern);
  // The part before the first wildcard may go through symlinks: the person wrote it.
  std::string folder = "/";
  std::size_t fixed = 0;
  while (fixed < names.size() && names[fixed].find_first_of("*?[") == std::string::npos)
    folder = join(folder, names[fixed++]);
  Result<Traced> start = trace(folder);
  if (!start)
    return {.paths = {}, .complete = start.error().err == ENOENT || start.error().err == ENOTDIR};
  Globber globber(limit);
  globber.match(start->path, std::span(names).subspan(fixed));
  return std::move(globber.found);
}

namespace {

// The files of a tree that are wanted.
template <class F>
LinkedFiles walk(const std::string& tree, std::size_t limit, F&& wanted) {
  LinkedFiles found;
  std::vector<std::string> folders{tree};
  std::size_t looked_at = 0;
  while (!folders.empty() && looked_at < limit) {
    std::string folder = std::move(folders.back());
    folders.pop_back();
    found.complete &= each_entry(folder, [&](std::string_view name, unsigned char type) {
      if (++looked_at >= limit) return;
      std::string path = join(folder, name);
      struct stat st{};
      if (is_dir(path, type))
        folders.push_back(std::move(path));
      else if (::lstat(path.c_str(), &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink > 1 &&
               wanted(st))
        found.files.push_back({std::move(path), st});
    });
  }
  found.complete &= looked_at < limit;
  return found;
}

}  // namespace

LinkedFiles linked_files(const std::string& tree, std::size_t limit) {
  return walk(tree, limit, [](const struct stat&) { return true; });
}

LinkedFiles names_of(const std::vector<struct stat>& files, const std::string& tree) {
  std::vector<std::pair<dev_t, ino_t>> wanted;
  for (const struct stat& st : files) wanted.emplace_back(st.st_dev, st.st_ino);
  std::ranges::sort(wanted);
  return walk(tree, kMaxWalk, [&](const struct stat& st) {
    return std::ranges::binary_search(wanted, std::pair(st.st_dev, st.st_ino));
  });
}

}  // namespace belljar
