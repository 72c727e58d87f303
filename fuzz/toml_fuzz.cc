// Any bytes as belljar.toml: read, merged and judged without a crash, and never
// wider than without them.
#include <cstdlib>

#include "policy/load.h"
#include "policy/widening.h"

namespace belljar {
namespace {

const ConfigPlaces kPlaces{
    .cwd = "/project", .home = "/home/me", .user_file = {}, .trust_file = {}, .mode_variable = {}};

void check(const ConfigFiles& files, const Task* task) {
  const Policy before = load({}, kPlaces, {}).value().policy;
  Result<Loaded> after = load(files, kPlaces, {}, task);
  if (after && widening(before, after->policy)) std::abort();
  if (!after && after.error().what.find_first_of("\n\x1b") != std::string::npos) std::abort();
}

}  // namespace
}  // namespace belljar

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace belljar;
  const std::string text(data, data + size);
  Result<Config> config = parse_config(
      text, {.file = "belljar.toml", .origin = {.folder = "/project", .home = "/home/me"}});
  if (!config) return 0;
  ConfigFiles files;
  files.project = Project{.config = std::move(*config), .path = {}, .hash = {}};
  check(files, nullptr);
  int some = 4;
  for (const auto& [name, task] : files.project->config.tasks)
    if (some-- > 0) check(files, &task);
  return 0;
}
