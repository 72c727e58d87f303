#include "server/owner_key.h"

#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "base/file.h"
#include "server/secret.h"
#include "server/tokens.h"

namespace belljar::server {
namespace {

constexpr std::size_t kMaxKey = 200;
constexpr std::string_view kPrefix = "key-";

// By the socket itself: it may have several paths.
Result<std::string> name_for(const std::string& socket_path) {
  struct stat about{};
  if (::stat(socket_path.c_str(), &about) < 0) return fail("look at " + socket_path, errno);
  return std::string(kPrefix) + std::to_string(about.st_dev) + "-" + std::to_string(about.st_ino);
}

// It becomes a line of a request.
bool is_key(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_';
  });
}

bool is_at(int fd, const std::string& path) {
  struct stat open{};
  struct stat there{};
  return ::fstat(fd, &open) == 0 && ::lstat(path.c_str(), &there) == 0 &&
         open.st_dev == there.st_dev && open.st_ino == there.st_ino;
}

}  // namespace

KeyFile::KeyFile(KeyFile&& other) noexcept
    : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)) {}

KeyFile::~KeyFile() {
  // Another server may have taken the name; then it is not ours to remove.
  if (lock_ && is_at(lock_.get(), path_)) (void)::unlink(path_.c_str());
}

OwnerKey::OwnerKey() : text_(make_token()) {}

bool OwnerKey::is(std::string_view given) const { return same_secret(text_, given); }

Result<KeyFile> OwnerKey::put(const std::string& folder, const std::string& socket_path) const {
  const std::string path = folder + "/" + TRY(name_for(socket_path));
  // Locked before it has the name by which it is swept. mkostemp makes it 0600.
  std::string temporary = folder + "/.key-XXXXXX";
  Fd file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!file) return fail("make a key in " + folder, errno);
  KeyFile key(temporary, std::move(file));
  if (::flock(key.lock_.get(), LOCK_EX | LOCK_NB) < 0 || !write_all(key.lock_.get(), text_ + "\n"))
    return fail("write " + temporary, errno);
  if (::rename(temporary.c_str(), path.c_str()) < 0) return fail("make " + path, errno);
  key.path_ = path;
  return key;
}

Result<std::string> read_owner_key(std::vector<std::string> folders,
                                   const std::string& socket_path) {
  const std::string name = TRY(name_for(socket_path));
  // Root asks the servers of others, whose runtime folder is not root's.
  folders.push_back(std::filesystem::path(socket_path).parent_path());
  int err = ENOENT;
  for (const std::string& folder : folders) {
    Result<std::string> text = read_regular(folder + "/" + name, kMaxKey);
    if (!text && text.error().err != ENOENT) err = text.error().err;
    if (!text) continue;
    if (text->ends_with('\n')) text->pop_back();
    if (is_key(*text)) return *std::move(text);
  }
  return fail("find the owner's key for " + socket_path, err,
              "run this as who started the server, with its XDG_RUNTIME_DIR, where the key is; "
              "others ask over HTTP, with a token");
}

void sweep_keys(const std::string& folder) {
  std::error_code ignored;  // what cannot be listed has none to remove
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string path = entry.path();
    if (!entry.path().filename().string().starts_with(kPrefix)) continue;
    const Fd file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (file && ::flock(file.get(), LOCK_SH | LOCK_NB) == 0 && is_at(file.get(), path))
      (void)::unlink(path.c_str());
  }
}

}  // namespace belljar::server
