// Flags: `--name=value`, `--name value`, `-C value`, up to the command.
#pragma once

#include "cli/cli.h"
#include "policy/keys.h"

namespace belljar::cli {

// A flag of one command, beside those of the policy.
struct Flag {
  std::string_view name;
  char letter = 0;               // a short form, or 0
  std::string* value = nullptr;  // and, or
  bool* seen = nullptr;
  std::vector<std::string>* values = nullptr;  // in place of `value`: it may come again
};

struct Parsed {
  Settings settings;
  Arguments rest;  // from the first argument that is no flag
};

Result<Parsed> parse_flags(const Arguments& arguments, const std::vector<Flag>& own);

// For commands that take no policy: the words, with flags before and after each of them.
Result<Arguments> parse_words(const Arguments& arguments, const std::vector<Flag>& own);

}  // namespace belljar::cli
