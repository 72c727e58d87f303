// The command line: one file per command, and the only place that prints.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/output.h"
#include "plan/plan.h"
#include "policy/settings.h"

namespace belljar::cli {

using Arguments = std::vector<std::string>;

// Exit codes of ours; everything else is the guest's.
inline constexpr int kFailure = 125;

int main(Arguments arguments);

// The commands. Each returns the exit code. A new one also gets a row in commands.h.
int exec(const Arguments& arguments);
int explain(const Arguments& arguments);
int doctor(const Arguments& arguments);
int run(const Arguments& arguments);
int python(const Arguments& arguments);
int shell(const Arguments& arguments);
int serve(const Arguments& arguments);
int mcp(const Arguments& arguments);
int approvals(const Arguments& arguments);
int sessions(const Arguments& arguments);
int tasks(const Arguments& arguments);
int init(const Arguments& arguments);
int trust(const Arguments& arguments);
int config(const Arguments& arguments);
int profile(const Arguments& arguments);
int help(const Arguments& arguments);
int completion(const Arguments& arguments);
int man(const Arguments& arguments);
int docs(const Arguments& arguments);

// The code of a command that may have failed, whose error is printed then.
int report(const Result<int>& code);

Caller this_caller();

}  // namespace belljar::cli
