// read: a part of a text file, its lines numbered; or an image.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tools/workspace.h"

namespace belljar::tools {

inline constexpr std::uint64_t kMaxReadLines = 2'000;
inline constexpr std::size_t kMaxLineCharacters = 2'000;
inline constexpr std::size_t kMaxReadBytes = std::size_t{1} << 20;      // of all lines together
inline constexpr std::size_t kMaxImageBytes = std::size_t{5} << 20;     // what models take
inline constexpr std::uint64_t kMaxScanned = std::uint64_t{256} << 20;  // to find a line

struct ReadCall {
  std::string path;
  std::optional<std::uint64_t> offset, limit;  // of lines; the first is 1
};

struct ReadResult {
  std::string text;                    // "12: what stands there\n", UTF-8
  bool truncated = false;              // there is more, or a line was cut
  std::uint64_t lines = 0;             // that are shown
  std::optional<std::uint64_t> total;  // lines of the file, if its end was seen
  std::string path;                    // inside, symlinks followed
  std::optional<std::string> image_mime, image_base64;
};

Result<ReadResult> read(const Workspace& workspace, const ReadCall& call);

// By its first bytes; empty if it is none that we know.
std::string_view image_type(std::string_view head);
// As grep and git: a zero byte near the front.
bool looks_binary(std::string_view head);

}  // namespace belljar::tools
