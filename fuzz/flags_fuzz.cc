// Any arguments: parsed, and made a policy, without a crash.
#include "cli/flags.h"
#include "policy/profiles.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace belljar;
  cli::Arguments arguments;
  std::string one;
  for (std::size_t i = 0; i < size; ++i) {
    if (data[i] != '\n') {
      one.push_back(static_cast<char>(data[i]));
      continue;
    }
    arguments.push_back(std::move(one));
    one.clear();
  }
  arguments.push_back(std::move(one));

  std::string value;
  bool seen = false;
  Result<cli::Parsed> parsed = cli::parse_flags(
      arguments, {{.name = "report", .value = &value}, {.name = "json", .seen = &seen}});
  if (parsed)
    (void)make_policy(parsed->settings, {.cwd = "/project", .home = "/home/me"});  // may refuse
  return 0;
}
