// Whole small files: those of /proc, /sys and configuration.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace belljar {

// nullopt when it cannot be read, for whatever reason.
std::optional<std::string> read_text(const std::string& path);
Status write_text(const std::string& path, std::string_view text);

}  // namespace belljar
