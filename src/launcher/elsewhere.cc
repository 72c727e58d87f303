// Where there is no sandbox nothing runs: neither Linux nor macOS. CMake refuses to build there;
// this is for those who build the library some other way.
#include <cerrno>

#include "belljar/belljar.h"

namespace belljar {
namespace {
std::unexpected<Error> no_sandbox() {
  return fail("belljar has no sandbox for this system, and does not run anything without one",
              ENOTSUP, "Linux and macOS have one");
}
}  // namespace

Result<Outcome> run(const Policy& /*policy*/, const Command& /*command*/,
                    const Caller& /*caller*/) {
  return no_sandbox();
}

Result<std::string> explain(const Policy& /*policy*/, const Caller& /*caller*/) {
  return no_sandbox();
}

}  // namespace belljar
