// Classic BPF as seccomp uses it: run a filter on one call without loading it,
// and print it. A filter of another architecture can be tested this way, and one
// that would kill the test.
//
// Does only the instructions that belljar's filters have. On any other it says
// so with no verdict, and the test fails.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace belljar::bpf {

struct Verdict {
  std::uint32_t action;  // SECCOMP_RET_*
  bool read_arguments;   // or only the number: then the kernel can cache it
};

std::optional<Verdict> evaluate(std::span<const sock_filter> program, const seccomp_data& call);

std::string describe(std::uint32_t action);
std::string disassemble(std::span<const sock_filter> program);

}  // namespace belljar::bpf
