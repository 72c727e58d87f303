#include "cli/images.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

#include "base/base64.h"
#include "base/file.h"
#include "cli/session_loop.h"

namespace belljar::cli {
namespace {

// The protocol of kitty, which other terminals know too:
// https://sw.kovidgoyal.net/kitty/graphics-protocol/
bool shows_images() {
  if (::isatty(1) == 0) return false;
  auto has = [](const char* name, std::string_view part) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): one thread here
    return value != nullptr && std::string_view(value).find(part) != std::string_view::npos;
  };
  return has("TERM", "kitty") || has("TERM", "ghostty") || has("TERM_PROGRAM", "WezTerm");
}

void draw(std::string_view png) {
  constexpr std::size_t kPiece = 4096;
  bool first = true;
  while (!png.empty()) {
    const std::string_view piece = png.substr(0, kPiece);
    png.remove_prefix(piece.size());
    std::string text = "\x1b_G";
    if (first) text += "f=100,a=T,";
    text += std::string("m=") + (png.empty() ? "0" : "1") + ";";
    write_all(1, text.append(piece).append("\x1b\\"));
    first = false;
  }
  write_all(1, "\n");
}

}  // namespace

Status ImageFolder::show(std::string_view png) {
  const std::optional<std::string> bytes = from_base64(png);
  if (!bytes || !bytes->starts_with("\x89PNG")) return {};  // the guest says so, and it is none
  if (shows_images()) draw(png);
  if (folder_.empty()) {
    std::string folder = "/tmp/belljar-images-XXXXXX";
    if (::mkdtemp(folder.data()) == nullptr) return fail("make a folder for pictures", errno);
    folder_ = folder;
  }
  const std::string path = folder_ + "/" + std::to_string(++count_) + ".png";
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) return fail("make " + path, errno);
  if (!write_all(file.get(), *bytes)) return fail("write " + path, errno);
  write_all(1, "[picture: " + path + "]\n");
  return {};
}

}  // namespace belljar::cli
