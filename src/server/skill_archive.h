// Skills as they arrive: a zip, or loose files. What comes out is a list of files with
// harmless names and bounded sizes, with a SKILL.md that says what it is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/multipart.h"

namespace belljar::server {

inline constexpr std::uint64_t kMaxSkillUpload = std::uint64_t{50} << 20;    // bytes, packed
inline constexpr std::uint64_t kMaxSkillUnpacked = std::uint64_t{64} << 20;  // bytes
inline constexpr std::size_t kMaxSkillFiles = 500;
inline constexpr std::size_t kMaxSkillDepth = 10;
inline constexpr std::size_t kMaxSkillPath = 512;

struct SkillFile {
  std::string path;  // relative, of plain names
  std::string content;
  bool executable = false;
};

struct SkillFiles {
  std::string name;         // from the front matter of SKILL.md
  std::string description;  // the same
  std::vector<SkillFile> files;
};

// Everything else is refused: links, devices, `..`, absolute paths, names twice.
Status check_skill_path(std::string_view path);
Result<std::vector<SkillFile>> unpack_zip(std::string_view bytes);
// Loose files, or one zip.
Result<std::vector<SkillFile>> files_of_form(std::vector<Part> parts);
// SKILL.md at the root, or in the only folder there.
Result<SkillFiles> read_skill(std::vector<SkillFile> files);

}  // namespace belljar::server
