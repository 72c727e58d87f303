#include "session/output_file.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <unistd.h>

#include <algorithm>

#include "base/syscall.h"

namespace belljar::session {
namespace {

constexpr std::size_t kMaxName = 128;
// Where the policy names no size.
constexpr std::uint64_t kLargest = std::uint64_t{256} << 20;

bool matches(const std::vector<std::string>& globs, const std::string& name) {
  return std::ranges::any_of(globs, [&](const std::string& glob) {
    return ::fnmatch(glob.substr(glob.rfind('/') + 1).c_str(), name.c_str(), 0) == 0;
  });
}

bool may_be_written(const Files& files, const std::string& name) {
  if (files.workdir_access != Access::write) return false;
  for (const Grant& grant : files.grants)
    if (grant.access != Access::write && grant.path == files.workdir + "/" + name) return false;
  return !matches(files.protect_globs, name) && !matches(files.hide_globs, name);
}

}  // namespace

bool OutputFile::is_name(std::string_view name) {
  auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !name.empty() && name.size() <= kMaxName && name[0] != '.' &&
         std::ranges::all_of(name, allowed);
}

Result<std::shared_ptr<OutputFile>> OutputFile::make(int workdir_fd, const Policy& policy,
                                                     const std::string& name) {
  if (!is_name(name))
    return fail("output_file is no plain name", 0,
                "up to 128 letters, digits and - _ . and no dot at the beginning");
  if (!may_be_written(policy.files, name))
    return fail("output_file " + name + " is not for the guest to write", EACCES);
  Fd file(::openat(workdir_fd, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                   0600));
  if (!file && errno == EEXIST) return fail("make output_file " + name, EEXIST, "name another");
  if (!file) return fail("make output_file " + name, errno);
  const std::optional<std::uint64_t>& largest_mb = policy.limits.file_sz_mb;
  return std::shared_ptr<OutputFile>(
      new OutputFile(std::move(file), largest_mb ? *largest_mb << 20U : kLargest));
}

void OutputFile::append(std::string_view bytes) {
  std::string_view rest = bytes.substr(0, std::min<std::uint64_t>(bytes.size(), room_));
  left_out_ += bytes.size() - rest.size();
  while (!rest.empty()) {
    ssize_t n = retry([&] { return ::write(file_.get(), rest.data(), rest.size()); });
    if (n <= 0) {  // the disk is full
      left_out_ += rest.size();
      room_ = 0;
      return;
    }
    room_ -= static_cast<std::uint64_t>(n);
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
}

}  // namespace belljar::session
