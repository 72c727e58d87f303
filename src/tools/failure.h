// Failure: why a file tool did not do what it was asked for. An Error with a kind, because a
// program chooses what to do by the kind, and a model by the words: every message says what was
// wrong, and its hint what to do next.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace belljar::tools {

enum class Kind : std::uint8_t {
  bad_argument,    // a call that makes no sense
  not_found,       // no such file or folder
  outside,         // not in a place that the session shows
  denied_by_rule,  // a path rule of the operator's
  read_only,       // can be read but not written here
  no_permission,   // the file's own mode
  not_a_file,      // a folder, FIFO, socket or device
  not_a_folder,
  too_large,
  binary,  // no text, and no image either
  no_match,
  many_matches,
  bad_pattern,  // a glob or regular expression that cannot be read
  changed,      // somebody else changed it meanwhile
  failed,       // a system call
};
std::string_view name(Kind kind);

struct Failure : Error {
  Failure(Kind its_kind, Error error) : Error(std::move(error)), kind(its_kind) {}
  // Of the folders below, a system call's: TRY passes it on as it is.
  explicit(false) Failure(Error error) : Error(std::move(error)) {}

  Kind kind = Kind::failed;
  bool operator==(const Failure&) const = default;
};

// Of everything in this folder. A Failure is an Error, so TRY passes it on to those above.
template <class T>
using Result = std::expected<T, Failure>;
using Status = Result<void>;

inline std::unexpected<Failure> refuse(Kind kind, std::string what, std::string hint = {},
                                       int err = 0) {
  return std::unexpected(Failure(kind, Error{std::move(what), err, std::move(hint)}));
}

// The kind that an errno of a look-up means. `what` is lower case: "open src/main.cc".
std::unexpected<Failure> refuse_errno(std::string what, int err);

}  // namespace belljar::tools
