// Create: new files and folders that are the guest's own, whoever makes them.
#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>

#include "base/fd.h"
#include "tools/failure.h"

namespace belljar::tools {

// An existing one is no error. `what` begins the message: "make the folder of a/b".
Status create_folder(int parent_fd, const std::string& name, const std::string& what);

// Whole or not at all: a file without a name is written and then takes the place of `name`, so
// nobody sees a part of it, and a symlink there is replaced and not followed. It gets mode and
// owner of `before`, the file that was there, or those that fit the folder.
// `unchanged` is asked at the last moment; false gives up.
struct Replacement {
  int folder_fd;
  const std::string& name;
  std::string_view content;
  const struct stat* before = nullptr;
};
template <class Unchanged>
Status replace(const Replacement& it, const std::string& what, Unchanged unchanged);

// The two halves of it.
struct NewFile {
  Fd fd;
  std::string name;  // in the folder, that nobody guesses
};
Result<NewFile> create_file(const Replacement& it, const std::string& what);
Status put_in_place(const Replacement& it, const NewFile& file, const std::string& what);
void discard(const Replacement& it, const NewFile& file);

template <class Unchanged>
Status replace(const Replacement& it, const std::string& what, Unchanged unchanged) {
  const NewFile file = TRY(create_file(it, what));
  if (unchanged()) return put_in_place(it, file, what);
  discard(it, file);
  return refuse(Kind::changed, what + ": somebody else changed it meanwhile",
                "read it again and repeat the call");
}

}  // namespace belljar::tools
