// The system calls by name, in groups with a reason each: what no guest may
// call, and what ordinary programs call. seccomp_compile turns these tables, and
// those of syscall_arguments.h, into filters.
//
// A call that is in no group is allowed by the deny-list and absent (ENOSYS) in
// the allow-list. Does not do: numbers. Those are libseccomp's, per architecture.
#pragma once

#include <span>
#include <string_view>

namespace belljar::seccomp {

struct Group {
  std::string_view name;
  std::string_view why;
  std::span<const char* const> calls;
};

// Fail with EPERM, under either list. Not ENOSYS: a program that asks to mount
// should say that it may not, and not that the kernel is too old.
std::span<const Group> denied_groups();

// Fail with ENOSYS, under either list: their callers fall back to an older call
// whose arguments a filter can read.
std::span<const Group> absent_groups();

// What the allow-list allows.
std::span<const Group> allowed_groups();

// Calls that make memory which no limit but a cgroup's counts.
std::span<const char* const> memfd_calls();

// Calls that x86_64 has for its age and aarch64 never had. Any other name that
// an architecture lacks is a mistake in a table, and the build fails.
std::span<const char* const> x86_64_only_calls();

}  // namespace belljar::seccomp
