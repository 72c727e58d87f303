// Front matter: the YAML between two lines of --- with which a Markdown file begins. Skills come
// from anybody, so it has a length, and not many brackets: the reader goes down one call for each.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace belljar::server {

// The YAML of a file's text. Error: there is none, or more than `most` bytes of it.
Result<std::string> front_matter(std::string_view text, std::size_t most);

}  // namespace belljar::server
