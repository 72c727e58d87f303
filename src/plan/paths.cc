#include "plan/paths.h"

#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace belljar {

std::vector<std::string> names_of_path(std::string_view path) {
  std::vector<std::string> names;
  while (!path.empty()) {
    std::string_view name = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(name.size() + 1, path.size()));
    if (!name.empty() && name != ".") names.emplace_back(name);
  }
  return names;
}

namespace {

constexpr int kMaxLinks = 40;  // the kernel's own limit

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
  const std::vector<std::string> names = names_of_path(path);
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

}  // namespace belljar
