#include "cli/cli.h"

#include <cstdio>

namespace belljar::cli {

Caller this_caller() { return this_process(); }

void print_error(const Error& error) {
  std::fprintf(stderr, "belljar: %s\n", error.message().c_str());
}

void print_warning(std::string_view text) {
  std::fprintf(stderr, "belljar: warning: %.*s\n", static_cast<int>(text.size()), text.data());
}

int report(const Result<int>& code) {
  if (code) return *code;
  print_error(code.error());
  return kFailure;
}

int main(const Arguments& arguments) {
  if (arguments.empty()) return kFailure;
  Arguments rest(arguments.begin() + 1, arguments.end());
  constexpr struct {
    std::string_view name;
    int (*run)(const Arguments&);
  } kCommands[] = {{"exec", exec},      {"x", exec},       {"explain", explain},
                   {"doctor", doctor},  {"run", cli::run}, {"tasks", tasks},
                   {"init", init},      {"trust", trust},  {"config", config},
                   {"profile", profile}};
  for (const auto& command : kCommands)
    if (command.name == arguments[0]) return command.run(rest);
  print_error({.what = "unknown command " + arguments[0], .err = 0, .hint = "belljar --help"});
  return kFailure;
}

}  // namespace belljar::cli
