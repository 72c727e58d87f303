#include "launcher/program.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/uapi.h"

namespace belljar::launcher {

Result<Fd> make_program(const char* name, std::string_view image) {
  Fd file(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC));
  if (!file && errno == EINVAL)  // before Linux 6.3 every memfd can be executed
    file.reset(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) return fail(std::string("make ") + name, errno);
  if (::write(file.get(), image.data(), image.size()) != static_cast<ssize_t>(image.size()))
    return fail(std::string("write ") + name, errno);
  if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) <
      0)
    return fail(std::string("seal ") + name, errno);
  return file;
}

}  // namespace belljar::launcher
