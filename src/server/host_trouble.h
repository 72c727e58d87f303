// What the host has run out of. The client did nothing wrong, and must not learn where on the host
// it happened: paths there hold names of users and of other sessions.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <string>

#include "base/result.h"

namespace belljar::server {

inline bool is_of_the_host(const Error& error) {
  constexpr int kShortages[] = {EMFILE, ENFILE, ENOMEM,  ENOSPC, EDQUOT,
                                EAGAIN, EIO,    ENOBUFS, EROFS};
  return std::ranges::find(kShortages, error.err) != std::end(kShortages);
}

// As a client is told.
inline Error without_place(const Error& error) {
  return {.what = "the host cannot do this now",
          .err = error.err,
          .hint = "try again later; who runs the server finds more in its audit trail"};
}

inline std::string told(const Error& error) {
  return is_of_the_host(error) ? without_place(error).message() : error.message();
}

}  // namespace belljar::server
