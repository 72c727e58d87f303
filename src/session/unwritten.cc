#include "session/unwritten.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <filesystem>
#include <memory>
#include <sstream>

#include "base/file.h"
#include "launcher/request.h"
#include "layers/layout.h"

namespace belljar::session {
namespace {

// Debian's Python with numpy and matplotlib has 16,000.
constexpr std::size_t kMostEntries = 400'000;
constexpr std::size_t kMostLinks = 40;

// Where programs are installed, and no belljar works on files.
constexpr const char* kInstalled[] = {
    "/usr/bin",       "/usr/sbin",        "/usr/lib",       "/usr/lib32",
    "/usr/lib64",     "/usr/share",       "/usr/local/bin", "/usr/local/sbin",
    "/usr/local/lib", "/usr/local/share", "/bin",           "/sbin",
    "/lib",           "/lib32",           "/lib64",         "/etc",
    "/nix/store"};

constexpr const char* kHint =
    "sessions start faster with a Python that the system's administrator installed";

std::unexpected<Error> may_be_written(const std::string& path) {
  return fail("a guest may have written " + path, 0, kHint);
}

std::string parent(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

std::vector<std::string> parts(std::string_view text, char separator) {
  std::vector<std::string> all;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    all.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return all;
}

// Canonical where it can be, since it is compared with what is.
std::string canonical(const std::string& path) {
  std::error_code ignored;
  std::filesystem::path whole = std::filesystem::weakly_canonical(path, ignored);
  return ignored ? path : whole.string();
}

// The value of `home` in a pyvenv.cfg: where the Python is that an environment was made from.
std::string home_in(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t equals = line.find('=');
    if (equals == line.npos || line.substr(0, line.find_first_of(" =")) != "home") continue;
    const std::size_t begin = line.find_first_not_of(' ', equals + 1);
    return begin == line.npos ? "" : line.substr(begin, line.find_last_not_of(" \r") - begin + 1);
  }
  return {};
}

}  // namespace

bool may_write_programs(const Files& files) {
  if (::geteuid() != 0) return false;
  std::vector<std::string> written{files.workdir, files.home_dir, files.cache_dir, files.tmp_dir};
  for (const Grant& grant : files.grants)
    if (grant.access == Access::write) written.push_back(grant.path);
  auto holds_programs = [](const std::string& path) {
    const std::string whole = canonical(path);
    return !path.empty() && std::ranges::any_of(kInstalled, [&](const char* tree) {
      return is_below(whole, tree) || is_below(tree, whole);
    });
  };
  return files.writes_everything || std::ranges::any_of(written, holds_programs);
}

Unwritten::Unwritten() : is_root_(::geteuid() == 0), left_(kMostEntries) {
  std::vector<gid_t> groups(static_cast<std::size_t>(std::max(::getgroups(0, nullptr), 0)));
  const int count = ::getgroups(static_cast<int>(groups.size()), groups.data());
  groups.resize(static_cast<std::size_t>(std::max(count, 0)));
  groups_.insert(groups.begin(), groups.end());
  groups_.insert(::getegid());
}

bool Unwritten::is_writable(const struct stat& st) const {
  return st.st_uid != 0 || (st.st_mode & S_IWOTH) != 0 ||
         ((st.st_mode & S_IWGRP) != 0 && groups_.contains(st.st_gid));
}

Status Unwritten::check_entry(const std::string& path, const struct stat& st) const {
  if (S_ISLNK(st.st_mode) ? st.st_uid != 0 : is_writable(st)) return may_be_written(path);
  return {};
}

// Of what has no symlinks.
Status Unwritten::check_place(const std::string& path) const {
  const bool is_installed =
      std::ranges::any_of(kInstalled, [&](const char* tree) { return is_below(path, tree); });
  if (is_root_ && !is_installed) return may_be_written(path);
  return {};
}

// Name by name, so that each folder and each link on the way is looked at.
Result<Unwritten::Resolved> Unwritten::resolve(const std::string& path) {
  if (!path.starts_with('/')) return may_be_written(path);
  Resolved resolved;
  std::vector<std::string> names = parts(path, '/');
  std::ranges::reverse(names);
  std::size_t links = 0;
  std::string at;  // empty: the root
  struct stat root{};
  if (::stat("/", &root) < 0) return fail("look at /", errno);
  TRY(check_entry("/", root));
  while (!names.empty()) {
    const std::string name = std::move(names.back());
    names.pop_back();
    if (name.empty() || name == ".") continue;
    if (name == "..") {
      at.erase(std::min(at.rfind('/'), at.size()));
      continue;
    }
    const std::string next = at + "/" + name;
    struct stat st{};
    if (::lstat(next.c_str(), &st) < 0) {
      if (errno != ENOENT && errno != ENOTDIR) return fail("look at " + next, errno);
      resolved.st = {};  // and nobody can make it in a folder that nobody may write
      resolved.path = next;
      return resolved;
    }
    TRY(check_entry(next, st));
    resolved.st = st;
    if (!S_ISLNK(st.st_mode)) {
      at = next;
      continue;
    }
    if (++links > kMostLinks) return fail("look at " + path, ELOOP);
    char target[PATH_MAX];
    const ssize_t n = ::readlink(next.c_str(), target, sizeof target);
    if (n < 0) return fail("look at " + next, errno);
    resolved.folders.push_back(at);
    std::vector<std::string> more = parts({target, static_cast<std::size_t>(n)}, '/');
    if (target[0] == '/') at.clear();
    names.insert(names.end(), more.rbegin(), more.rend());
  }
  resolved.path = at.empty() ? "/" : at;
  resolved.folders.push_back(parent(resolved.path));
  TRY(check_place(resolved.path));
  return resolved;
}

// ---- trees ----------------------------------------------------------------------

Status Unwritten::check_tree(const std::string& path) {
  const Resolved resolved = TRY(resolve(path));
  if (resolved.st.st_mode == 0) return check_place(resolved.path);
  const bool is_known = std::ranges::any_of(
      good_, [&](const std::string& tree) { return is_below(resolved.path, tree); });
  if (is_known) return {};
  good_.insert(resolved.path);  // if it is not, all is refused
  return S_ISDIR(resolved.st.st_mode) ? check_below(resolved.path) : Status();
}

Status Unwritten::check_below(const std::string& folder) {
  std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(folder.c_str()), ::closedir);
  if (!dir) return fail("look at " + folder, errno);
  std::vector<std::string> folders, links;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(dir.get());
    if (entry == nullptr && errno != 0) return fail("look at " + folder, errno);
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    const std::string path = folder + "/" + entry->d_name;
    struct stat st{};
    if (::fstatat(::dirfd(dir.get()), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
      return fail("look at " + path, errno);
    if (left_-- == 0) return fail("look at " + folder + ": it holds too much");
    TRY(check_entry(path, st));
    if (S_ISDIR(st.st_mode)) folders.push_back(path);
    if (S_ISLNK(st.st_mode)) links.push_back(path);
    if (S_ISREG(st.st_mode) && name.ends_with(".pth")) TRY(check_path_file(path));
  }
  dir.reset();  // a deep tree needs no descriptor for each of its levels
  for (const std::string& link : links) TRY(check_tree(link));
  for (const std::string& below : folders) TRY(check_below(below));
  return {};
}

// Each line of a .pth file is a folder of modules, or code.
Status Unwritten::check_path_file(const std::string& file) {
  const std::optional<std::string> text = read_text(file);
  if (!text) return fail("read " + file);
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    line.erase(line.find_last_not_of(" \t\r") + 1);
    if (line.empty() || line.starts_with('#') || line.starts_with("import ") ||
        line.starts_with("import\t"))
      continue;
    TRY(check_tree(line.starts_with('/') ? line : parent(file) + "/" + line));
  }
  return {};
}

// ---- the interpreter ------------------------------------------------------------

Status Unwritten::check_variables(const std::vector<std::string>& environment) {
  for (const std::string& variable : environment) {
    const std::string name = variable.substr(0, variable.find('='));
    const std::string value = variable.substr(std::min(name.size() + 1, variable.size()));
    const bool is_path = name == "PYTHONPATH" || name == "PYTHONHOME" || value.contains('/');
    if (!name.starts_with("PYTHON") || !is_path || value.empty()) continue;
    for (const std::string& path : parts(value, ':')) TRY(check_tree(path));
  }
  return {};
}

// The modules of a Python in this folder, and of an environment.
Status Unwritten::check_modules(const std::string& folder) {
  for (const char* modules : {"/lib", "/lib64", "/local/lib"}) {
    std::error_code none;  // then there are none
    for (const auto& entry : std::filesystem::directory_iterator(parent(folder) + modules, none))
      if (::fnmatch("python3*", entry.path().filename().c_str(), 0) == 0)
        TRY(check_tree(entry.path().string()));
  }
  return {};
}

// An environment says in a file which Python it was made from.
Status Unwritten::check_environment(const std::string& folder) {
  for (const std::string& beside : {folder, parent(folder)}) {
    const std::string file = beside + "/pyvenv.cfg";
    const Resolved resolved = TRY(resolve(file));
    if (resolved.st.st_mode == 0) continue;
    const Resolved home = TRY(resolve(home_in(read_text(file).value_or(""))));
    TRY(check_modules(home.path));
  }
  return check_modules(folder);
}

Result<std::string> Unwritten::interpreter(const std::string& python,
                                           const std::vector<std::string>& environment) {
  TRY(check_variables(environment));
  const std::vector<std::string> candidates = TRY(launcher::paths_to_try(python, environment));
  const auto found = std::ranges::find_if(
      candidates, [](const std::string& path) { return ::access(path.c_str(), X_OK) == 0; });
  if (found == candidates.end()) return fail("find " + python, ENOENT);
  const Resolved program = TRY(resolve(*found));
  // A script, such as those of pyenv, decides by itself what it starts.
  Fd file = TRY(open_path(program.path.c_str(), O_RDONLY));
  char begin[4] = {};
  if (::read(file.get(), begin, sizeof begin) != sizeof begin ||
      std::string_view(begin, sizeof begin) != "\177ELF")
    return fail(*found + " is a script", 0, kHint);
  for (const std::string& folder : program.folders) TRY(check_environment(folder));
  return *found;
}

}  // namespace belljar::session
