#include "tools/create.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"
#include "base/random.h"
#include "tools/beneath.h"

namespace belljar::tools {
namespace {

constexpr mode_t kOwnerMayWrite = 0600;
constexpr mode_t kOthersMayWrite = 0002;

// What fits into a folder: open to whom the folder is, but never for everybody to write. The
// umask plays no part: a server's has nothing to do with the guest.
mode_t file_mode(const struct stat& folder) {
  return (folder.st_mode & 0666 & ~kOthersMayWrite) | kOwnerMayWrite;
}
mode_t folder_mode(const struct stat& folder) {
  return (folder.st_mode & 0777 & ~kOthersMayWrite) | 0700;
}

// As root we would make root's files. The guest is who owns the folder; or we act as the guest,
// which cannot give away what is its own.
bool take_owner(int fd, const struct stat& like) {
  return ::geteuid() != 0 || ::fchown(fd, like.st_uid, like.st_gid) == 0 || errno == EPERM;
}

// Content, owner and mode. Owner first: changing it clears bits of the mode.
Status fill(int fd, const Replacement& it, const struct stat& folder, const std::string& what) {
  const struct stat& like = it.before != nullptr ? *it.before : folder;
  const mode_t mode = it.before != nullptr ? it.before->st_mode & 0777 : file_mode(folder);
  if (!write_all(fd, it.content) || !take_owner(fd, like) || ::fchmod(fd, mode) < 0)
    return refuse_errno(what, errno);
  return {};
}

}  // namespace

Status create_folder(int parent_fd, const std::string& name, const std::string& what) {
  struct stat parent{};
  if (::fstat(parent_fd, &parent) < 0) return refuse_errno(what, errno);
  if (::mkdirat(parent_fd, name.c_str(), 0700) < 0) {
    if (errno == EEXIST) return {};
    return refuse_errno(what, errno);
  }
  // The guest may have put another in its place already; it is the guest's either way.
  const Fd folder = open_name(parent_fd, name, O_RDONLY | O_DIRECTORY);
  if (!folder) return {};
  if (!take_owner(folder.get(), parent) || ::fchmod(folder.get(), folder_mode(parent)) < 0)
    return refuse_errno(what, errno);
  return {};
}

Result<NewFile> create_file(const Replacement& it, const std::string& what) {
  struct stat folder{};
  if (::fstat(it.folder_fd, &folder) < 0) return refuse_errno(what, errno);
  NewFile file{.fd = {}, .name = ".belljar-" + random_hex(16)};
  // Without a name nothing is left of it should we die before it is whole.
  file.fd = Fd(::openat(it.folder_fd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  if (file.fd) {
    TRY(fill(file.fd.get(), it, folder, what));
    const std::string link = "/proc/self/fd/" + std::to_string(file.fd.get());
    if (::linkat(AT_FDCWD, link.c_str(), it.folder_fd, file.name.c_str(), AT_SYMLINK_FOLLOW) == 0)
      return file;
  }
  // Not every file system has those.
  file.fd = Fd(::openat(it.folder_fd, file.name.c_str(),
                        O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.fd) return refuse_errno(what, errno);
  if (Status filled = fill(file.fd.get(), it, folder, what); !filled) {
    discard(it, file);
    return std::unexpected(filled.error());
  }
  return file;
}

// No fsync: it takes milliseconds, and the file systems that we know order this rename after
// the data.
Status put_in_place(const Replacement& it, const NewFile& file, const std::string& what) {
  if (::renameat(it.folder_fd, file.name.c_str(), it.folder_fd, it.name.c_str()) == 0) return {};
  const int err = errno;
  discard(it, file);
  return refuse_errno(what, err);
}

void discard(const Replacement& it, const NewFile& file) {
  ::unlinkat(it.folder_fd, file.name.c_str(), 0);  // nothing more can be done about it
}

}  // namespace belljar::tools
