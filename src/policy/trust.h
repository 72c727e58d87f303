// Which project files the person trusts: path and content, remembered outside
// every workspace, one line each as `sha256sum --check` reads them. A byte changed
// and the file is a stranger again.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace belljar {

struct Trusted {
  std::string hash;
  std::string path;
  bool operator==(const Trusted&) const = default;
};

// No file yet: nothing is trusted. One that others can write to is an error.
Result<std::vector<Trusted>> read_trusted(const std::string& trust_file);
bool is_trusted(const std::vector<Trusted>& all, std::string_view path, std::string_view hash);

// Replaces what was remembered for the path.
Status trust(const std::string& trust_file, const Trusted& entry);
// False when it was not trusted.
Result<bool> revoke(const std::string& trust_file, std::string_view path);

}  // namespace belljar
