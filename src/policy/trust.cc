#include "policy/trust.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/fd.h"
#include "base/file.h"

namespace belljar {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{16} << 20;
constexpr std::size_t kHashDigits = 64;
constexpr std::string_view kBetween = "  ";  // of hash and path, as sha256sum has it

Result<std::vector<Trusted>> parse(std::string_view text, const std::string& file) {
  std::vector<Trusted> all;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const bool whole = line.size() > kHashDigits + kBetween.size() &&
                       line.substr(kHashDigits, kBetween.size()) == kBetween;
    if (!whole) return fail(file + " is damaged", 0, "remove it and trust your projects again");
    all.push_back({.hash = std::string(line.substr(0, kHashDigits)),
                   .path = std::string(line.substr(kHashDigits + kBetween.size()))});
  }
  return all;
}

Status write(const std::string& file, const std::vector<Trusted>& all) {
  std::string text;
  for (const Trusted& entry : all)
    text.append(entry.hash).append(kBetween).append(entry.path).append("\n");
  return replace_file(file, text, 0600);
}

// Two at the same time would each lose the other's line.
Result<Fd> lock_folder_of(const std::string& file) {
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  std::error_code error;
  const bool made = std::filesystem::create_directories(folder, error);
  if (error) return fail("make " + folder.string(), error.value());
  if (made) ::chmod(folder.c_str(), 0700);  // best effort: the file itself is 0600
  Fd lock = TRY(open_path(folder.c_str(), O_RDONLY | O_DIRECTORY));
  if (::flock(lock.get(), LOCK_EX) < 0) return fail("lock " + folder.string(), errno);
  return lock;
}

}  // namespace

Result<std::vector<Trusted>> read_trusted(const std::string& trust_file) {
  struct stat st{};
  if (::stat(trust_file.c_str(), &st) < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return std::vector<Trusted>{};
    return fail("stat " + trust_file, errno);
  }
  const bool own = st.st_uid == ::geteuid() && (st.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  if (!own)
    return fail(trust_file + " can be written by others", 0, "chown it to yourself and chmod 600");
  std::string text = TRY(read_regular(trust_file, kMaxBytes));
  return parse(text, trust_file);
}

bool is_trusted(const std::vector<Trusted>& all, std::string_view path, std::string_view hash) {
  return std::ranges::any_of(
      all, [&](const Trusted& entry) { return entry.path == path && entry.hash == hash; });
}

Status trust(const std::string& trust_file, const Trusted& entry) {
  if (entry.path.find('\n') != std::string::npos)
    return fail("a path with a line break cannot be trusted");
  Fd lock = TRY(lock_folder_of(trust_file));
  std::vector<Trusted> all = TRY(read_trusted(trust_file));
  std::erase_if(all, [&](const Trusted& old) { return old.path == entry.path; });
  all.push_back(entry);
  return write(trust_file, all);
}

Result<bool> revoke(const std::string& trust_file, std::string_view path) {
  Fd lock = TRY(lock_folder_of(trust_file));
  std::vector<Trusted> all = TRY(read_trusted(trust_file));
  if (std::erase_if(all, [&](const Trusted& old) { return old.path == path; }) == 0) return false;
  TRY(write(trust_file, all));
  return true;
}

}  // namespace belljar
