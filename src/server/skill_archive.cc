#include "server/skill_archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <memory>
#include <set>

#include "base/utf8.h"
#include "server/front_matter.h"

namespace belljar::server {
namespace {

constexpr std::size_t kMaxFrontMatter = 16 << 10;
constexpr std::size_t kMaxName = 64;
constexpr std::size_t kMaxDescription = 1024;

struct CloseArchive {
  void operator()(archive* it) const { ::archive_read_free(it); }
};

std::unexpected<Error> no_zip(archive* from) {
  const char* why = ::archive_error_string(from);
  return fail("the archive cannot be read" + (why != nullptr ? ": " + std::string(why) : ""));
}

Result<std::string> read_content(archive* from, std::uint64_t room) {
  std::string content;
  // The size that an entry claims is its maker's word: what comes out is counted.
  std::string piece(64 << 10, '\0');
  while (true) {
    const la_ssize_t size = ::archive_read_data(from, piece.data(), piece.size());
    if (size < 0) return no_zip(from);
    if (size == 0) return content;
    content.append(piece.data(), static_cast<std::size_t>(size));
    if (content.size() > room) return fail("the skill is larger than 64 MiB when it is unpacked");
  }
}

Status check_files(const std::vector<SkillFile>& files) {
  if (files.size() > kMaxSkillFiles) return fail("the skill has more than 500 files");
  std::set<std::string_view> names;
  std::uint64_t total = 0;
  for (const SkillFile& file : files) {
    TRY(check_skill_path(file.path));
    if (!names.insert(file.path).second) return fail("the file " + file.path + " is there twice");
    total += file.content.size();
  }
  if (total > kMaxSkillUnpacked) return fail("the skill is larger than 64 MiB");
  // A file cannot be a folder too.
  for (const SkillFile& file : files)
    for (std::size_t slash = file.path.find('/'); slash != file.path.npos;
         slash = file.path.find('/', slash + 1))
      if (names.contains(std::string_view(file.path).substr(0, slash)))
        return fail(file.path.substr(0, slash) + " is a file and a folder");
  return {};
}

// The only folder that everything is in; empty: there is none.
std::string common_folder(const std::vector<SkillFile>& files) {
  const std::string top = files.front().path.substr(0, files.front().path.find('/') + 1);
  const bool all =
      std::ranges::all_of(files, [&](const SkillFile& file) { return file.path.starts_with(top); });
  return all ? top : std::string();
}

std::string text_at(const YAML::Node& node, const char* name) {
  const YAML::Node value = node[name];
  return value && value.IsScalar() ? value.as<std::string>() : std::string();
}

Status read_front_matter(std::string_view text, SkillFiles& skill) {
  const Result<std::string> yaml = front_matter(text, kMaxFrontMatter);
  if (!yaml) return fail("SKILL.md: " + yaml.error().what);
  try {
    const YAML::Node node = YAML::Load(*yaml);
    if (!node.IsMap()) return fail("the front matter of SKILL.md is no mapping");
    skill.name = text_at(node, "name");
    skill.description = text_at(node, "description");
  } catch (const YAML::Exception& error) {
    return fail("the front matter of SKILL.md is no YAML: " + error.msg);
  }
  const bool plain = std::ranges::all_of(skill.name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
  if (skill.name.empty() || skill.name.size() > kMaxName || !plain)
    return fail("the name in SKILL.md must be up to 64 of a-z 0-9 - _");
  if (skill.description.empty() || skill.description.size() > kMaxDescription ||
      !is_utf8(skill.description))
    return fail("the description in SKILL.md must be a text of up to 1024 bytes");
  return {};
}

}  // namespace

Status check_skill_path(std::string_view path) {
  const std::unexpected<Error> wrong =
      fail("this is no name for a file of a skill: " + repair_utf8(path.substr(0, kMaxSkillPath)));
  if (path.empty() || path.size() > kMaxSkillPath || !is_utf8(path)) return wrong;
  std::size_t depth = 0;
  while (true) {
    const std::string_view part = path.substr(0, path.find('/'));
    const bool plain = std::ranges::none_of(part, [](char c) {
      return c == '\\' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    });
    if (part.empty() || part == "." || part == ".." || part.size() > 255 || !plain) return wrong;
    if (++depth > kMaxSkillDepth) return wrong;
    if (part.size() == path.size()) return {};
    path.remove_prefix(part.size() + 1);
  }
}

Result<std::vector<SkillFile>> unpack_zip(std::string_view bytes) {
  const std::unique_ptr<archive, CloseArchive> from(::archive_read_new());
  if (from == nullptr) return fail("there is no memory for the archive");
  ::archive_read_support_format_zip_seekable(from.get());
  if (::archive_read_open_memory(from.get(), bytes.data(), bytes.size()) != ARCHIVE_OK)
    return no_zip(from.get());
  std::vector<SkillFile> files;
  std::uint64_t room = kMaxSkillUnpacked;
  std::size_t entries = 0;
  archive_entry* entry = nullptr;
  int status = ARCHIVE_OK;
  while ((status = ::archive_read_next_header(from.get(), &entry)) == ARCHIVE_OK ||
         status == ARCHIVE_WARN) {
    if (++entries > 2 * kMaxSkillFiles) return fail("the archive has too many entries");
    const char* name = ::archive_entry_pathname(entry);
    if (name == nullptr) return fail("the archive has an entry without a name");
    const auto type = ::archive_entry_filetype(entry);
    if (type == AE_IFDIR) continue;  // those that hold files are made anyway
    if (type != AE_IFREG || ::archive_entry_hardlink(entry) != nullptr)
      return fail("the archive holds a link or a device: " + repair_utf8(name));
    TRY(check_skill_path(name));
    if (files.size() >= kMaxSkillFiles) return fail("the skill has more than 500 files");
    std::string content = TRY(read_content(from.get(), room));
    room -= content.size();
    files.push_back({.path = name,
                     .content = std::move(content),
                     .executable = (::archive_entry_perm(entry) & 0111U) != 0});
  }
  if (status != ARCHIVE_EOF) return no_zip(from.get());
  return files;
}

Result<std::vector<SkillFile>> files_of_form(std::vector<Part> parts) {
  std::erase_if(parts, [](const Part& part) {
    return part.filename.empty() ||
           (part.name != "files" && part.name != "file" && part.name != "files[]");
  });
  if (parts.empty())
    return fail("the form holds no file", 0, "fields named files, file or files[]");
  if (parts.size() == 1 && parts[0].content.starts_with("PK")) return unpack_zip(parts[0].content);
  std::vector<SkillFile> files;
  for (Part& part : parts)
    files.push_back({.path = std::move(part.filename),
                     .content = std::move(part.content),
                     .executable = false});
  return files;
}

Result<SkillFiles> read_skill(std::vector<SkillFile> files) {
  if (files.empty()) return fail("the skill has no files");
  TRY(check_files(files));
  auto is_main = [](const SkillFile& file) { return file.path == "SKILL.md"; };
  if (std::ranges::none_of(files, is_main)) {
    const std::string top = common_folder(files);
    for (SkillFile& file : files) file.path.erase(0, top.size());
  }
  const auto main = std::ranges::find_if(files, is_main);
  if (main == files.end()) return fail("there is no SKILL.md at the root of the skill");
  SkillFiles skill;
  TRY(read_front_matter(main->content, skill));
  skill.files = std::move(files);
  return skill;
}

}  // namespace belljar::server
