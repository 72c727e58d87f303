// multipart/form-data (RFC 7578), of a body that is there as a whole.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace belljar::server {

struct Part {
  std::string name;      // of the field
  std::string filename;  // empty: it is no file
  std::string content;
};

inline constexpr std::size_t kMaxParts = 1'000;

// The boundary in a Content-Type; empty: there is none.
std::string boundary_in(std::string_view content_type);
Result<std::vector<Part>> parse_multipart(std::string_view body, std::string_view boundary);

}  // namespace belljar::server
