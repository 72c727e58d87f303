#include "plan/tree_search.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/fd.h"
#include "layers/layout.h"
#include "plan/paths.h"

namespace belljar {

std::string shortened(const std::string& path) {
  constexpr std::size_t kMost = 300;
  return path.size() <= kMost ? path : path.substr(0, kMost) + "…";
}

namespace {

bool is_not_there(int err) { return err == ENOENT || err == ENOTDIR || err == ELOOP; }

bool is_pattern(std::string_view name) { return name.find_first_of("*?[") != name.npos; }

// The guest may change the mode of what is the caller's, and then see more than we did.
std::unexpected<Error> cannot_look_into(const std::string& folder, const struct stat& st, int err) {
  const std::string shown = shortened(folder);
  std::string hint;
  if (err == EACCES)
    hint = st.st_uid == ::geteuid() ? "chmod u+rwx " + shown
                                    : "it belongs to another user; --hide=" + shown +
                                          " leaves it out, or get leave to look into it";
  if (err == EMFILE) hint = "raise the limit of open files: ulimit -n";
  return fail("look into " + shown, err, std::move(hint));
}

struct Entry {
  std::string name;
  unsigned char type;
  bool may_be(unsigned char wanted) const { return type == wanted || type == DT_UNKNOWN; }
};

struct Folder {
  std::string path;  // as the pattern has it: whoever hides a part of it keeps the symlinks too
  std::string real;
  std::size_t depth;
  std::unique_ptr<DIR, int (*)(DIR*)> dir{nullptr, ::closedir};
  std::optional<std::vector<Entry>> entries = {};  // once it was listed

  int fd() const { return ::dirfd(dir.get()); }
};

class Search {
 public:
  Search(std::span<const std::string> hidden, SearchLimits limits)
      : hidden_(hidden), limits_(limits) {}

  // nullopt: it is not there.
  Result<std::optional<Folder>> open(const std::string& path) {
    Result<Traced> traced = trace(path);
    if (!traced && is_not_there(traced.error().err)) return std::nullopt;
    if (!traced) return std::unexpected(why_not_seen(path, traced.error().err));
    const Fd fd = TRY(open_traced(traced->path, traced->st));
    return open_at(fd.get(), "", {.path = path, .real = std::move(traced->path), .depth = 0});
  }

  // nullopt: it is not there any more, no folder, or hidden.
  Result<std::optional<Folder>> enter(const Folder& in, const std::string& name) {
    Folder folder{.path = join(in.path, name), .real = join(in.real, name), .depth = in.depth + 1};
    if (is_hidden(folder.real)) return std::nullopt;
    if (in.depth == limits_.depth)
      return fail("there are more than " + std::to_string(limits_.depth) +
                      " folders within one another: " + shortened(folder.path),
                  0, "remove that tree, or move it away");
    return open_at(in.fd(), name.c_str(), std::move(folder));
  }

  Result<std::span<const Entry>> list(Folder& folder) {
    if (folder.entries) return std::span<const Entry>(*folder.entries);
    folder.entries.emplace();
    for (;;) {
      errno = 0;
      const dirent* entry = ::readdir(folder.dir.get());
      if (entry == nullptr && errno != 0) return fail("list " + shortened(folder.path), errno);
      if (entry == nullptr) break;
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      if (++looked_at_ >= limits_.entries)
        return fail("there are more than " + std::to_string(limits_.entries) +
                        " files and folders, counted up to " + shortened(folder.path),
                    0, "name the folder or file that is meant");
      folder.entries->emplace_back(std::string(name), entry->d_type);
    }
    return std::span<const Entry>(*folder.entries);
  }

  // nullopt: it is not there any more.
  static Result<std::optional<struct stat>> look_at(const Folder& in, const std::string& name) {
    struct stat st{};
    if (::fstatat(in.fd(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0) return st;
    const int err = errno;
    if (is_not_there(err)) return std::nullopt;
    if (::fstat(in.fd(), &st) < 0) return fail("look into " + shortened(in.path), errno);
    return cannot_look_into(in.path, st, err);
  }

  static std::string join(const std::string& folder, std::string_view name) {
    return (folder == "/" ? "" : folder) + "/" + std::string(name);
  }

  void leave_closed() { leaves_closed_ = true; }
  std::vector<std::string> take_closed() { return std::move(closed_); }

 private:
  // An empty name: the parent itself, which is open as a path only.
  Result<std::optional<Folder>> open_at(int parent_fd, const char* name, Folder folder) {
    Fd fd(::openat(parent_fd, name[0] == '\0' ? "." : name,
                   O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd) return without(parent_fd, name, std::move(folder.path), errno);
    folder.dir.reset(::fdopendir(fd.get()));
    if (!folder.dir) return fail("list " + shortened(folder.path), errno);
    (void)fd.release();  // the stream's now
    return folder;
  }

  // What to do about a folder that did not open.
  Result<std::optional<Folder>> without(int parent_fd, const char* name, std::string path,
                                        int err) {
    if (is_not_there(err)) return std::nullopt;
    struct stat st{};
    if (::fstatat(parent_fd, name, &st, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) == 0) {
      if (err != EACCES || !leaves_closed_ || st.st_uid == ::geteuid())
        return cannot_look_into(path, st, err);
      closed_.push_back(std::move(path));
      return std::nullopt;
    }
    // The folder above can be listed but not searched, which keeps us from everything in it.
    if (::fstat(parent_fd, &st) < 0) return fail("look into " + shortened(path), errno);
    path.resize(std::max<std::size_t>(path.rfind('/'), 1));
    return cannot_look_into(path, st, err);
  }

  bool is_hidden(const std::string& path) const {
    return std::ranges::any_of(hidden_,
                               [&](const std::string& tree) { return is_below(path, tree); });
  }

  std::span<const std::string> hidden_;
  SearchLimits limits_;
  std::size_t looked_at_ = 0;
  bool leaves_closed_ = false;
  std::vector<std::string> closed_;
};

class Globber {
 public:
  explicit Globber(Search& search) : search_(search) {}

  // `names` are the pattern's, from here on: at least one.
  Status match(Folder& folder, std::span<const std::string> names) {
    const std::string& name = names[0];
    if (name == "**") return match_folders(folder, names);
    if (!is_pattern(name)) return match_name(folder, name, names.subspan(1));
    for (const Entry& entry : TRY(search_.list(folder))) {
      if (::fnmatch(name.c_str(), entry.name.c_str(), 0) != 0) continue;
      if (names.size() == 1)
        found.push_back(Search::join(folder.path, entry.name));
      else if (entry.may_be(DT_DIR))
        TRY(match_in(search_.enter(folder, entry.name), names.subspan(1)));
    }
    return {};
  }
  std::vector<std::string> found;

 private:
  Status match_in(Result<std::optional<Folder>> entered, std::span<const std::string> names) {
    std::optional<Folder> folder = TRY(std::move(entered));
    return folder ? match(*folder, names) : Status();
  }

  Status match_folders(Folder& folder, std::span<const std::string> names) {
    if (names.size() == 1)
      found.push_back(folder.path);
    else
      TRY(match(folder, names.subspan(1)));
    for (const Entry& entry : TRY(search_.list(folder)))
      if (entry.may_be(DT_DIR)) TRY(match_in(search_.enter(folder, entry.name), names));
    return {};
  }

  // The person wrote this name, so it may be a symlink.
  Status match_name(const Folder& folder, const std::string& name,
                    std::span<const std::string> rest) {
    const std::optional<struct stat> st = TRY(Search::look_at(folder, name));
    if (!st) return {};
    std::string path = Search::join(folder.path, name);
    if (rest.empty())
      found.push_back(std::move(path));
    else if (S_ISLNK(st->st_mode))
      return match_in(search_.open(path), rest);
    else
      return match_in(search_.enter(folder, name), rest);
    return {};
  }

  Search& search_;
};

Status find_linked(Search& search, Folder& folder, std::vector<LinkedFile>& found) {
  for (const Entry& entry : TRY(search.list(folder))) {
    if (entry.may_be(DT_DIR))
      if (std::optional<Folder> below = TRY(search.enter(folder, entry.name)))
        TRY(find_linked(search, *below, found));
    if (!entry.may_be(DT_REG)) continue;
    const std::optional<struct stat> st = TRY(Search::look_at(folder, entry.name));
    if (st && S_ISREG(st->st_mode) && st->st_nlink > 1)
      found.push_back({Search::join(folder.path, entry.name), *st});
  }
  return {};
}

Result<std::vector<LinkedFile>> linked_files(Search& search, const std::string& tree) {
  std::vector<LinkedFile> found;
  std::optional<Folder> top = TRY(search.open(tree));
  if (top) TRY(find_linked(search, *top, found));
  return found;
}

}  // namespace

Error why_not_seen(const std::string& path, int err) {
  std::string above = path;
  struct stat st{};
  while (above.size() > 1 && ::lstat(above.c_str(), &st) < 0)
    above.resize(std::max<std::size_t>(above.rfind('/'), 1));
  if (err == EACCES) return cannot_look_into(above, st, err).error();
  std::string hint;
  if (err == ENAMETOOLONG) hint = "remove it, or move it up into a folder with a shorter path";
  return {.what = "look at " + shortened(path), .err = err, .hint = std::move(hint)};
}

Result<std::vector<std::string>> expand_glob(std::string_view pattern,
                                             std::span<const std::string> hidden,
                                             SearchLimits limits) {
  const std::vector<std::string> names = names_of_path(pattern);
  // The part before the first wildcard may go through symlinks: the person wrote it.
  std::string folder = "/";
  std::size_t fixed = 0;
  while (fixed < names.size() && !is_pattern(names[fixed]))
    folder = Search::join(folder, names[fixed++]);
  Search search(hidden, limits);
  Globber globber(search);
  std::optional<Folder> start = TRY(search.open(folder));
  if (start && fixed < names.size()) TRY(globber.match(*start, std::span(names).subspan(fixed)));
  return std::move(globber.found);
}

Result<std::vector<LinkedFile>> linked_files(const std::string& tree,
                                             std::span<const std::string> hidden,
                                             SearchLimits limits) {
  Search search(hidden, limits);
  return linked_files(search, tree);
}

Result<OpenPart> linked_files_but_closed(const std::string& tree, SearchLimits limits) {
  Search search({}, limits);
  search.leave_closed();
  std::vector<LinkedFile> files = TRY(linked_files(search, tree));
  return OpenPart{.files = std::move(files), .closed = search.take_closed()};
}

}  // namespace belljar
