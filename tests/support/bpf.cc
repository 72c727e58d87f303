#include "support/bpf.h"

#include <cstddef>
#include <cstring>
#include <sstream>

namespace belljar::bpf {
namespace {

constexpr unsigned kLoad = BPF_LD | BPF_W | BPF_ABS;
constexpr unsigned kAnd = BPF_ALU | BPF_AND | BPF_K;
constexpr unsigned kReturn = BPF_RET | BPF_K;
constexpr unsigned kJump = BPF_JMP | BPF_JA;

struct Jump {
  unsigned code;
  const char* name;
  bool (*taken)(std::uint32_t a, std::uint32_t k);
};

constexpr Jump kJumps[] = {
    {BPF_JMP | BPF_JEQ | BPF_K, "jeq", [](std::uint32_t a, std::uint32_t k) { return a == k; }},
    {BPF_JMP | BPF_JGT | BPF_K, "jgt", [](std::uint32_t a, std::uint32_t k) { return a > k; }},
    {BPF_JMP | BPF_JGE | BPF_K, "jge", [](std::uint32_t a, std::uint32_t k) { return a >= k; }},
    {BPF_JMP | BPF_JSET | BPF_K, "jset",
     [](std::uint32_t a, std::uint32_t k) { return (a & k) != 0; }},
};

const Jump* find_jump(unsigned code) {
  for (const Jump& jump : kJumps)
    if (jump.code == code) return &jump;
  return nullptr;
}

std::string field(std::uint32_t offset) {
  if (offset == offsetof(seccomp_data, nr)) return "nr";
  if (offset == offsetof(seccomp_data, arch)) return "arch";
  std::size_t in_args = offset - offsetof(seccomp_data, args);
  return "arg" + std::to_string(in_args / 8) + (in_args % 8 == 0 ? ".low" : ".high");
}

}  // namespace

std::optional<Verdict> evaluate(std::span<const sock_filter> program, const seccomp_data& call) {
  std::uint32_t a = 0;
  bool read_arguments = false;
  for (std::size_t pc = 0; pc < program.size(); ++pc) {
    const sock_filter& insn = program[pc];
    if (insn.code == kReturn) return Verdict{insn.k, read_arguments};
    if (insn.code == kLoad) {
      if (insn.k + sizeof a > sizeof call) return std::nullopt;
      std::memcpy(&a, reinterpret_cast<const char*>(&call) + insn.k, sizeof a);
      read_arguments |= insn.k >= offsetof(seccomp_data, instruction_pointer);
    } else if (insn.code == kAnd) {
      a &= insn.k;
    } else if (insn.code == kJump) {
      pc += insn.k;
    } else if (const Jump* jump = find_jump(insn.code)) {
      pc += jump->taken(a, insn.k) ? insn.jt : insn.jf;
    } else {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

std::string describe(std::uint32_t action) {
  if (action == SECCOMP_RET_ALLOW) return "allow";
  if (action == SECCOMP_RET_KILL_PROCESS) return "kill process";
  const char* err = strerrorname_np(static_cast<int>(action & SECCOMP_RET_DATA));
  if ((action & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO && err) return err;
  return "action " + std::to_string(action);
}

std::string disassemble(std::span<const sock_filter> program) {
  std::ostringstream out;
  for (std::size_t pc = 0; pc < program.size(); ++pc) {
    const sock_filter& insn = program[pc];
    out << std::dec << pc << ": ";
    if (insn.code == kReturn)
      out << "return " << describe(insn.k);
    else if (insn.code == kLoad)
      out << "load " << field(insn.k);
    else if (insn.code == kAnd)
      out << "and 0x" << std::hex << insn.k;
    else if (insn.code == kJump)
      out << "goto " << pc + 1 + insn.k;
    else if (const Jump* jump = find_jump(insn.code))
      out << jump->name << " 0x" << std::hex << insn.k << std::dec << " ? " << pc + 1 + insn.jt
          << " : " << pc + 1 + insn.jf;
    else
      out << "unknown code 0x" << std::hex << insn.code;
    out << '\n';
  }
  return out.str();
}

}  // namespace belljar::bpf
