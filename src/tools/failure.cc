#include "tools/failure.h"

#include <array>
#include <cerrno>

namespace belljar::tools {

std::string_view name(Kind kind) {
  static constexpr std::array<std::string_view, 15> kNames = {
      "bad_argument",  "not_found",    "outside",      "denied_by_rule", "read_only",
      "no_permission", "not_a_file",   "not_a_folder", "too_large",      "binary",
      "no_match",      "many_matches", "bad_pattern",  "changed",        "failed"};
  static_assert(kNames.size() == static_cast<std::size_t>(Kind::failed) + 1);
  return kNames.at(static_cast<std::size_t>(kind));
}

std::unexpected<Failure> refuse_errno(std::string what, int err) {
  switch (err) {
    case ENOENT:
      return refuse(Kind::not_found, std::move(what), "use glob to see which files there are", err);
    case ENOTDIR:
      return refuse(Kind::not_a_folder, std::move(what), "a part of the path is a file", err);
    case EISDIR:
      return refuse(Kind::not_a_file, std::move(what), "it is a folder; use glob to list it", err);
    case ENXIO:  // a socket, or a device that is not there
    case ENODEV:
      return refuse(Kind::not_a_file, std::move(what), "only regular files can be opened", err);
    case EXDEV:
    case ELOOP:
      return refuse(Kind::outside, std::move(what), "a symbolic link leads out of this place", err);
    case EACCES:
    case EPERM:
      return refuse(Kind::no_permission, std::move(what), "change its mode with the shell", err);
    case EROFS:
      return refuse(Kind::read_only, std::move(what), "write to another place", err);
    case ENAMETOOLONG:
      return refuse(Kind::bad_argument, std::move(what), "use a shorter path", err);
    case ENOSPC:
    case EDQUOT:
      return refuse(Kind::failed, std::move(what), "remove files that are not needed", err);
    default:
      return refuse(Kind::failed, std::move(what), {}, err);
  }
}

}  // namespace belljar::tools
