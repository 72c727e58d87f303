// The command line: one file per command, and the only place that prints.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "plan/plan.h"
#include "policy/settings.h"

namespace belljar::cli {

using Arguments = std::vector<std::string>;

// Exit codes of ours; everything else is the guest's.
inline constexpr int kFailure = 125;

int main(const Arguments& arguments);

int exec(const Arguments& arguments);

Caller this_caller();
void print_error(const Error& error);
void print_warning(std::string_view text);

}  // namespace belljar::cli
