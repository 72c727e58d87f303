#include "tools/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/printable.h"
#include "base/syscall.h"
#include "tools/beneath.h"

namespace belljar::tools {
namespace {

constexpr std::size_t kBatch = 256;  // files of one folder that one thread takes

std::string below_of(const std::string& folder, std::string_view name) {
  std::string path = folder;
  if (path != "/") path += '/';
  return path.append(name);
}

unsigned char type_of(int folder_fd, const char* name) {
  struct stat st{};
  if (::fstatat(folder_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) return DT_UNKNOWN;
  return S_ISREG(st.st_mode) ? DT_REG : S_ISDIR(st.st_mode) ? DT_DIR : DT_UNKNOWN;
}

}  // namespace

std::optional<Ignore> read_ignore(int folder_fd) {
  const Fd file = open_name(folder_fd, ".gitignore", O_RDONLY);
  struct stat st{};
  if (!file || ::fstat(file.get(), &st) < 0 || !S_ISREG(st.st_mode)) return std::nullopt;
  std::string text;
  char buffer[16 << 10];
  while (text.size() < kMaxIgnoreFile) {
    const ssize_t n = retry([&] { return ::read(file.get(), buffer, sizeof buffer); });
    if (n <= 0) break;
    text.append(buffer, static_cast<std::size_t>(n));
  }
  Ignore ignore = Ignore::parse(text);
  if (ignore.empty()) return std::nullopt;
  return ignore;
}

Tree::Tree(const TreeSearch& search)
    : search_(search),
      base_length_(search.base.inside == "/" ? 1 : search.base.inside.size() + 1),
      has_hidden_(std::ranges::any_of(search.workspace.roots(),
                                      [](const HeldRoot& held) { return held.root.hidden; })),
      deadline_(std::chrono::steady_clock::now() + search.limits.time) {}

// Those of the folders between the root and the base. One that cannot be read says nothing.
std::shared_ptr<const IgnoreChain> Tree::ignores_above() const {
  std::shared_ptr<const IgnoreChain> chain;
  const std::string& root = search_.base.root->root.inside;
  std::string_view inside = search_.base.inside;
  for (std::size_t end = root.size(); end < inside.size(); end = inside.find('/', end + 1)) {
    const std::string folder(inside.substr(0, std::max<std::size_t>(end, 1)));
    const Result<Place> place = search_.workspace.find_any(folder);
    if (!place || !S_ISDIR(place->st.st_mode)) continue;
    const AsGuest as_guest(place->root->guest);
    if (as_guest.failed()) continue;
    if (std::optional<Ignore> ignore = read_ignore(place->self.get()))
      chain = std::make_shared<const IgnoreChain>(
          IgnoreChain{chain, std::move(*ignore), folder == "/" ? 1 : folder.size() + 1});
  }
  return chain;
}

Result<bool> Tree::run() {
  const Place& base = search_.base;
  const std::string what = "list " + printable(base.inside);
  if (!S_ISDIR(base.st.st_mode)) return refuse_errno(what, ENOTDIR);
  auto folder = std::make_shared<Folder>();
  folder->inside = base.inside;
  folder->root = base.root;
  folder->ignore = ignores_above();
  {
    const AsGuest as_guest(base.root->guest);
    if (as_guest.failed()) return refuse_errno(what, EPERM);
    folder->fd = open_again(base.self.get(), O_RDONLY | O_DIRECTORY);
    if (!folder->fd) return refuse_errno(what, errno);
    active_ = 1;  // nobody else is there yet
    read_list(folder, 0);
  }
  done();
  work(0);
  if (helper_.joinable()) helper_.join();
  return complete_.load();
}

void Tree::work(std::size_t thread) {
  while (const std::optional<Work> work = next()) {
    if (thread == 0 && seen_ > kBatch) begin_helper();
    if (!work->files.empty()) {
      const AsGuest as_guest(work->folder->root->guest);
      if (!as_guest.failed()) visit_files(*work->folder, work->files, thread);
    } else {
      read_folder(*work, thread);
    }
    done();
  }
}

std::optional<Tree::Work> Tree::next() {
  std::unique_lock lock(mutex_);
  while (waiting_.empty() && active_ != 0 && !over_) changed_.wait(lock);
  if (waiting_.empty() || over_) {
    changed_.notify_all();
    return std::nullopt;
  }
  Work work = std::move(waiting_.back());
  waiting_.pop_back();
  ++active_;
  return work;
}

void Tree::done() {
  const std::lock_guard lock(mutex_);
  --active_;
  if (active_ == 0 || over_) changed_.notify_all();
}

void Tree::push(Work work) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(work));
  changed_.notify_one();
}

// A second thread costs more than a small tree takes. Not to be called as the guest: the new thread
// would stay that.
void Tree::begin_helper() {
  if (helper_.joinable() || std::thread::hardware_concurrency() < kThreads) return;
  helper_ = std::jthread([this] { work(1); });
}

bool Tree::over() {
  if (over_) return true;
  const bool late = std::chrono::steady_clock::now() > deadline_;
  if (!late && seen_ <= search_.limits.entries && !search_.stop.stop_requested()) return false;
  cut();
  over_ = true;
  return true;
}

void Tree::read_folder(const Work& work, std::size_t thread) {
  if (over()) return;
  auto folder = std::make_shared<Folder>();
  folder->inside = below_of(work.folder->inside, work.name);
  folder->root = work.enters != nullptr ? work.enters : work.folder->root;
  folder->ignore = work.folder->ignore;
  folder->depth = work.folder->depth + 1;
  const AsGuest as_guest(folder->root->guest);
  if (as_guest.failed()) return;
  folder->fd = work.enters != nullptr
                   ? open_again(work.enters->fd.get(), O_RDONLY | O_DIRECTORY)
                   : open_name(work.folder->fd.get(), work.name, O_RDONLY | O_DIRECTORY);
  if (!folder->fd) return;  // gone, or not for us
  if (has_hidden_ && work.enters == nullptr) {
    struct stat st{};
    if (::fstat(folder->fd.get(), &st) < 0) return;
    const HeldRoot* root = search_.workspace.root_of(st);
    if (root != nullptr && root->root.hidden) return;
  }
  read_list(folder, thread);
}

void Tree::read_list(const std::shared_ptr<Folder>& folder, std::size_t thread) {
  std::optional<Listing> listing = list(*folder);
  if (!listing) return;
  add_nested_roots(*folder, *listing);
  if (listing->has_ignore)
    if (std::optional<Ignore> ignore = read_ignore(folder->fd.get()))
      folder->ignore = std::make_shared<const IgnoreChain>(
          IgnoreChain{folder->ignore, std::move(*ignore),
                      folder->inside == "/" ? 1 : folder->inside.size() + 1});

  for (std::string& name : listing->folders) {
    const std::string inside = below_of(folder->inside, name);
    const HeldRoot* root = search_.workspace.root_at(inside);
    if (root != nullptr && root->root.hidden) continue;
    if (is_ignored(folder->ignore.get(), inside, Entry::folder)) continue;
    if (!search_.enters(std::string_view(inside).substr(base_length_))) continue;
    if (folder->depth >= search_.limits.depth) {
      cut();
      continue;
    }
    push({.folder = folder, .name = std::move(name), .enters = root, .files = {}});
  }
  // The first files are this thread's own; of many files the rest is for whoever has time.
  std::vector<std::string>& files = listing->files;
  while (files.size() > kBatch) {
    const auto from = files.end() - kBatch;
    push({.folder = folder,
          .name = {},
          .enters = nullptr,
          .files = {std::make_move_iterator(from), std::make_move_iterator(files.end())}});
    files.erase(from, files.end());
  }
  visit_files(*folder, files, thread);
}

std::optional<Tree::Listing> Tree::list(const Folder& folder) {
  Listing listing;
  alignas(dirent64) char buffer[32 << 10];
  for (;;) {
    const long size = ::syscall(SYS_getdents64, folder.fd.get(), buffer, sizeof buffer);
    if (size <= 0) return listing;  // an error in the middle of it: what there was
    for (long at = 0; at < size;) {
      dirent64 head{};
      const char* entry = buffer + at;
      std::memcpy(&head, entry, offsetof(dirent64, d_name));
      const char* name = entry + offsetof(dirent64, d_name);
      at += head.d_reclen;
      const std::string_view text = name;
      if (text == "." || text == ".." || text == ".git") continue;
      ++seen_;
      unsigned char type = head.d_type;
      if (type == DT_UNKNOWN) type = type_of(folder.fd.get(), name);
      if (type == DT_DIR) listing.folders.emplace_back(text);
      if (type == DT_REG) listing.files.emplace_back(text);
      if (type == DT_REG && text == ".gitignore") listing.has_ignore = true;
    }
    if (over()) return listing;
  }
}

// A root can be shown where its parent has nothing of that name.
void Tree::add_nested_roots(const Folder& folder, Listing& listing) const {
  for (const HeldRoot& held : search_.workspace.roots()) {
    const std::string& inside = held.root.inside;
    const std::size_t slash = inside.rfind('/');
    const std::string_view parent =
        std::string_view(inside).substr(0, std::max<std::size_t>(slash, 1));
    if (held.root.hidden || inside == "/" || parent != folder.inside) continue;
    struct stat st{};
    if (::fstat(held.fd.get(), &st) < 0 || !S_ISDIR(st.st_mode)) continue;
    const std::string name = inside.substr(slash + 1);
    if (std::ranges::find(listing.folders, name) == listing.folders.end())
      listing.folders.push_back(name);
    std::erase(listing.files, name);
  }
}

void Tree::visit_files(const Folder& folder, const std::vector<std::string>& files,
                       std::size_t thread) {
  std::string inside = below_of(folder.inside, "");
  const std::size_t length = inside.size();
  std::size_t count = 0;
  for (const std::string& name : files) {
    if (over_ || (++count % 64 == 0 && over())) return;
    inside.replace(length, std::string::npos, name);
    if (is_ignored(folder.ignore.get(), inside, Entry::file)) continue;
    if (!search_.workspace.allows(search_.tool, inside)) continue;
    if (has_hidden_) {
      struct stat st{};
      if (::fstatat(folder.fd.get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) < 0) continue;
      const HeldRoot* root = search_.workspace.root_of(st);
      if (root != nullptr && root->root.hidden) continue;
    }
    const TreeFile file{.folder_fd = folder.fd.get(),
                        .name = name,
                        .inside = inside,
                        .below = std::string_view(inside).substr(base_length_),
                        .thread = thread};
    if (!search_.visit(file)) over_ = true;
  }
}

}  // namespace belljar::tools
