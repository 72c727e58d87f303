#include "tools/write.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"
#include "base/printable.h"
#include "tools/beneath.h"
#include "tools/create.h"

namespace belljar::tools {
namespace {

// A root that is one file has no folder of ours to rename in.
Status write_in_place(const Place& place, std::string_view content, const std::string& what) {
  const Fd file = open_again(place.self.get(), O_WRONLY | O_TRUNC);
  if (!file) return refuse_errno(what, errno);
  if (!write_all(file.get(), content)) return refuse_errno(what, errno);
  return {};
}

}  // namespace

Result<Place> find_for_writing(const Workspace& workspace, std::string_view tool,
                               std::string_view path, Workspace::Missing missing) {
  if (path.ends_with('/'))
    return refuse(Kind::not_a_file, printable(path) + " names a folder", "name a file in it");
  Place place = TRY(workspace.find(tool, path, missing));
  const std::string what = printable(place.inside);
  if (!place.root->root.writable)
    return refuse(Kind::read_only, what + " is in a place that is read-only",
                  "this session can use " + workspace.places());
  if (!place.self) return place;
  if (S_ISDIR(place.st.st_mode))
    return refuse(Kind::not_a_file, what + " is a folder", "name a file in it");
  if (!S_ISREG(place.st.st_mode))
    return refuse(Kind::not_a_file, what + " is a FIFO, a socket or a device",
                  "choose another name");
  return place;
}

Result<WriteResult> write(const Workspace& workspace, const WriteCall& call) {
  if (call.content.size() > kMaxWriteBytes)
    return refuse(Kind::too_large,
                  "the content has more than " + std::to_string(kMaxWriteBytes) + " bytes",
                  "write it in parts, or with Python");
  const Place place =
      TRY(find_for_writing(workspace, "write", call.path, Workspace::Missing::makes_parents));
  const std::string what = "write " + printable(place.inside);
  const bool created = !place.self;
  const AsGuest as_guest(place.root->guest);
  if (as_guest.failed()) return refuse_errno(what, EPERM);
  if (place.name.empty()) {
    TRY(write_in_place(place, call.content, what));
  } else {
    const Replacement it{.folder_fd = place.folder.get(),
                         .name = place.name,
                         .content = call.content,
                         .before = created ? nullptr : &place.st};
    TRY(replace(it, what, [] { return true; }));
  }
  return WriteResult{.text = std::string(created ? "created " : "replaced ") +
                             printable(place.inside) + ", " + std::to_string(call.content.size()) +
                             " bytes\n",
                     .path = place.inside,
                     .bytes = call.content.size(),
                     .created = created};
}

}  // namespace belljar::tools
