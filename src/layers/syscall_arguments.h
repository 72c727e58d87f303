// Which arguments of allowed calls are refused. libseccomp is not asked: in one
// context it silently loses the refusal of an argument beside an allow of the
// call, and "all values but these" takes it dozens of rules. seccomp_compile
// makes a few instructions of each row and puts them before libseccomp's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace belljar::seccomp {

// What a condition asks of the low 32 bits of one argument. Of all arguments
// looked at here the kernel reads no more, so a guest may put anything above.
// A pointer is the exception.
enum class Test {
  always,   // holds
  any_bit,  // at least one bit of `mask` is set
  one_of,   // masked, it is one of `values`
  none_of,  // masked, it is none of `values`
  given,    // all 64 bits: a pointer that is not null
};

struct Condition {
  Test test = Test::always;
  unsigned arg = 0;
  std::uint32_t mask = ~0U;
  std::array<std::uint32_t, 6> values{};
  std::size_t count = 0;

  std::span<const std::uint32_t> list() const { return std::span(values).first(count); }
};

// `call` fails with `err` when every condition holds. With 0 it seems to succeed, and
// nothing is done.
struct Refusal {
  const char* call = "";
  int err = 0;
  std::array<Condition, 3> when{};
};

// Arguments refused under either list. One of the two socket tables goes with
// the first: what may be opened with a network, and without.
std::span<const Refusal> refusals();
std::span<const Refusal> socket_refusals();
std::span<const Refusal> socket_refusals_without_network();
// Arguments that make memory which no limit but a cgroup's counts.
std::span<const Refusal> uncounted_refusals();

}  // namespace belljar::seccomp
