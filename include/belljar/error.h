// Error and Result<T>: the one error-handling idiom of the library.
//
// A function that can fail because of the world (a syscall, a file, a peer)
// returns Result<T>. A function that can only fail because of a bug asserts.
// Nothing throws, and nothing below cli/ and server/ logs: an error is returned
// to someone who knows whether it matters.
#pragma once

#include <expected>
#include <string>
#include <utility>

namespace belljar {

struct Error {
  std::string what;  // what we were doing, lower case: "open /proc/self/ns/user"
  int err = 0;       // errno, or 0 when no syscall was involved
  std::string hint;  // what the person can do about it; may be empty

  std::string message() const;
  bool operator==(const Error&) const = default;
};

template <class T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

inline std::unexpected<Error> fail(std::string what, int err = 0, std::string hint = {}) {
  return std::unexpected(Error{std::move(what), err, std::move(hint)});
}

}  // namespace belljar
