#include "tools/edit.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/printable.h"
#include "base/syscall.h"
#include "tools/beneath.h"
#include "tools/create.h"
#include "tools/read.h"
#include "tools/write.h"

namespace belljar::tools {
namespace {

constexpr std::size_t kLinesNamed = 10;

Result<std::string> read_whole(const OpenFile& file) {
  const std::string what = printable(file.inside);
  std::string text;
  std::vector<char> buffer(std::size_t{256} << 10);
  for (;;) {
    const ssize_t n = retry([&] { return ::read(file.fd.get(), buffer.data(), buffer.size()); });
    if (n < 0) return refuse_errno("read " + what, errno);
    if (n == 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(n));
    if (text.size() > kMaxEditBytes)
      return refuse(Kind::too_large,
                    what + " has more than " + std::to_string(kMaxEditBytes) + " bytes",
                    "change it with Python or sed");
  }
  if (looks_binary(text))
    return refuse(Kind::binary, what + " is not text", "change it with Python");
  return text;
}

std::vector<std::size_t> places_of(std::string_view text, std::string_view wanted) {
  std::vector<std::size_t> places;
  for (std::size_t at = text.find(wanted); at != text.npos;
       at = text.find(wanted, at + wanted.size()))
    places.push_back(at);
  return places;
}

std::string with_crlf(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n' && (i == 0 || text[i - 1] != '\r')) out.push_back('\r');
    out.push_back(text[i]);
  }
  return out;
}

// Every line ends in CR LF: read does not show it, and who edits need not know.
bool is_crlf(std::string_view text) {
  bool any = false;
  for (std::size_t at = text.find('\n'); at != text.npos; at = text.find('\n', at + 1)) {
    if (at == 0 || text[at - 1] != '\r') return false;
    any = true;
  }
  return any;
}

std::uint64_t line_of(std::string_view text, std::size_t at) {
  return 1 + static_cast<std::uint64_t>(std::ranges::count(text.substr(0, at), '\n'));
}

std::string without_spaces(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (c != ' ' && c != '\t' && c != '\r' && c != '\n') out.push_back(c);
  return out;
}

std::unexpected<Failure> none(std::string_view text, const EditCall& call,
                              const std::string& what) {
  const std::string squeezed = without_spaces(call.old_string);
  std::string hint = "read the file again and copy the text exactly";
  if (!squeezed.empty() && without_spaces(text).find(squeezed) != std::string::npos)
    hint = "it is there with other spaces, tabs or line breaks: copy them as they are";
  const std::size_t digits = call.old_string.find_first_not_of("0123456789");
  if (digits != 0 && digits != std::string::npos &&
      std::string_view(call.old_string).substr(digits).starts_with(": "))
    hint = "leave out the line numbers that read puts in front";
  return refuse(Kind::no_match, "old_string is not in " + what, hint);
}

std::unexpected<Failure> many(std::string_view text, const std::vector<std::size_t>& places,
                              const std::string& what) {
  std::string lines;
  for (std::size_t i = 0; i < std::min(places.size(), kLinesNamed); ++i)
    lines += (i == 0 ? "" : ", ") + std::to_string(line_of(text, places[i]));
  if (places.size() > kLinesNamed) lines += ", …";
  return refuse(Kind::many_matches,
                "old_string is " + std::to_string(places.size()) + " times in " + what +
                    ", at lines " + lines,
                "give more of the text around it, or set replace_all");
}

struct Edited {
  std::string text;
  std::vector<std::size_t> places;  // in the text before
};

Result<Edited> apply(const std::string& text, const EditCall& call, const std::string& what) {
  std::string wanted = call.old_string;
  std::string replacement = call.new_string;
  if (is_crlf(text)) {
    wanted = with_crlf(wanted);
    replacement = with_crlf(replacement);
  }
  Edited edited{.text = {}, .places = places_of(text, wanted)};
  if (edited.places.empty()) return none(text, call, what);
  if (edited.places.size() > 1 && !call.replace_all) return many(text, edited.places, what);
  const std::size_t kept = text.size() - edited.places.size() * wanted.size();
  if (edited.places.size() * replacement.size() > kMaxEditBytes - std::min(kMaxEditBytes, kept))
    return refuse(Kind::too_large,
                  what + " would have more than " + std::to_string(kMaxEditBytes) + " bytes",
                  "replace less, or use Python");
  std::size_t from = 0;
  for (const std::size_t place : edited.places) {
    edited.text.append(text, from, place - from).append(replacement);
    from = place + wanted.size();
  }
  edited.text.append(text, from);
  return edited;
}

// A guest's clock can be set back, but not ctime.
bool same_version(const struct stat& a, const struct stat& b) {
  return a.st_ino == b.st_ino && a.st_dev == b.st_dev && a.st_size == b.st_size &&
         a.st_ctim.tv_sec == b.st_ctim.tv_sec && a.st_ctim.tv_nsec == b.st_ctim.tv_nsec;
}

}  // namespace

Result<EditResult> edit(const Workspace& workspace, const EditCall& call) {
  if (call.old_string.empty())
    return refuse(Kind::bad_argument, "old_string is empty", "to make a file, use write");
  if (call.old_string == call.new_string)
    return refuse(Kind::bad_argument, "old_string and new_string are the same",
                  "say what shall change");
  const Place place =
      TRY(find_for_writing(workspace, "edit", call.path, Workspace::Missing::is_an_error));
  const std::string what = printable(place.inside);
  if (place.name.empty())
    return refuse(Kind::not_a_file, what + " cannot be replaced as a whole",
                  "use write, which changes it in place");
  OpenFile file = TRY(workspace.open_file(place));
  // The version that is read, not the one that was found.
  if (::fstat(file.fd.get(), &file.st) < 0) return refuse_errno("look at " + what, errno);
  const std::string text = TRY(read_whole(file));
  const Edited edited = TRY(apply(text, call, what));

  const Replacement it{.folder_fd = place.folder.get(),
                       .name = place.name,
                       .content = edited.text,
                       .before = &file.st};
  const AsGuest as_guest(place.root->guest);
  if (as_guest.failed()) return refuse_errno("edit " + what, EPERM);
  TRY(replace(it, "edit " + what, [&] {
    const Fd now = open_name(place.folder.get(), place.name, O_PATH);
    struct stat st{};
    return now && ::fstat(now.get(), &st) == 0 && same_version(st, file.st);
  }));
  EditResult result{.text = {},
                    .path = place.inside,
                    .replacements = edited.places.size(),
                    .line = line_of(text, edited.places.front())};
  result.text = "edited " + what + ": " + std::to_string(result.replacements) +
                (result.replacements == 1 ? " place, line " : " places, the first in line ") +
                std::to_string(result.line) + "\n";
  return result;
}

}  // namespace belljar::tools
