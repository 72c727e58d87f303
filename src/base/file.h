// Whole small files: those of /proc, /sys and configuration.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace belljar {

// nullopt when it cannot be read, for whatever reason.
std::optional<std::string> read_text(const std::string& path);
Status write_text(const std::string& path, std::string_view text);

// False: errno says why, and some of it may be written.
bool write_all(int fd, std::string_view bytes);

// For files that someone else may have put there: a FIFO or a device is an error
// and not a hang, and so is more than `limit` bytes.
Result<std::string> read_regular(const std::string& path, std::size_t limit);

// The file has either its old content or the new one, whatever happens meanwhile.
Status replace_file(const std::string& path, std::string_view text, mode_t mode);

}  // namespace belljar
