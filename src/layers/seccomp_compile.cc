// seccomp_compile: writes every filter as an array of instructions, into one
// header. Runs on the build machine, for both architectures.
//
// A filter has three parts, and a call that passes one goes on to the next:
//   the prologue   the wrong architecture, x32, calls newer than our tables
//   the guard      refused arguments (syscall_arguments.h)
//   the list       allowed or denied calls, a balanced tree over their numbers
// libseccomp is asked for the numbers only: it cannot say the first two, and its
// tree has one leaf per call. Until a guarded call is met a filter reads only the
// number, so the kernel (5.11 and newer) finds at load time which calls are always
// allowed, and runs no filter for those.
//
// A name that libseccomp does not know, or that two lists claim, fails the build.
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "layers/seccomp_variant.h"
#include "layers/syscall_arguments.h"
#include "layers/syscall_groups.h"

namespace belljar::seccomp {
namespace {

using Program = std::vector<sock_filter>;

constexpr std::uint32_t kX32Bit = 0x40000000;
constexpr const char* kJoin = "setns";
constexpr std::uint32_t kNewestCall = 456;  // futex_requeue: the last that libseccomp 2.5.4 knows

static_assert(std::endian::native == std::endian::little, "low() assumes it, of both machines");

[[noreturn]] void stop(const std::string& why) {
  std::cerr << "seccomp_compile: " << why << '\n';
  std::exit(1);
}

std::uint32_t scmp_arch(Arch arch) {
  return arch == Arch::x86_64 ? SCMP_ARCH_X86_64 : SCMP_ARCH_AARCH64;
}

bool contains(std::span<const char* const> calls, const char* call) {
  return std::ranges::any_of(calls, [&](const char* c) { return std::strcmp(c, call) == 0; });
}

// The call's number, or nothing where the architecture is known not to have it.
std::optional<int> number(Arch arch, const char* call) {
  int nr = seccomp_syscall_resolve_name_arch(scmp_arch(arch), call);
  bool expected = arch == Arch::x86_64 || !contains(x86_64_only_calls(), call);
  if ((nr >= 0) != expected)
    stop(std::string(call) + (expected ? ": no such call" : ": not only on x86_64"));
  if (nr < 0) return std::nullopt;
  return nr;
}

// ---- instructions ----------------------------------------------------------

constexpr std::uint32_t refuse(int err) {
  return SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(err);
}

constexpr std::uint32_t low(unsigned arg) {
  return static_cast<std::uint32_t>(offsetof(seccomp_data, args) + arg * sizeof(std::uint64_t));
}

sock_filter load(std::size_t offset) {
  return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
}

sock_filter ret(std::uint32_t action) { return BPF_STMT(BPF_RET | BPF_K, action); }

// Distances count the instructions to skip.
sock_filter jump(unsigned test, std::uint32_t value, std::size_t if_true, std::size_t if_false) {
  if (if_true > 255 || if_false > 255) stop("a jump is too far for one instruction");
  return BPF_JUMP(static_cast<std::uint16_t>(BPF_JMP | BPF_K | test), value,
                  static_cast<std::uint8_t>(if_true), static_cast<std::uint8_t>(if_false));
}

void append(Program& to, const Program& more) { to.insert(to.end(), more.begin(), more.end()); }

// ---- the prologue ----------------------------------------------------------

Program prologue(Arch arch) {
  Program out = {
      load(offsetof(seccomp_data, arch)),
      jump(BPF_JEQ, scmp_arch(arch), 1, 0),
      ret(SECCOMP_RET_KILL_PROCESS),
      load(offsetof(seccomp_data, nr)),
  };
  if (arch == Arch::x86_64)
    append(out, {
                    // -1 is how programs call what this machine does not have: not x32.
                    jump(BPF_JEQ, ~0U, 2, 0),
                    jump(BPF_JGE, kX32Bit, 0, 1),
                    ret(SECCOMP_RET_KILL_PROCESS),
                });
  append(out, {jump(BPF_JGT, kNewestCall, 0, 1), ret(refuse(ENOSYS))});
  return out;
}

// ---- the guard -------------------------------------------------------------

// Goes on after itself when the condition holds, and else skips `miss` more.
Program compile(const Condition& condition, std::size_t miss) {
  if (condition.test == Test::always) return {};
  Program out = {load(low(condition.arg))};
  if (condition.test == Test::given) {
    append(out, {jump(BPF_JEQ, 0, 0, 2), load(low(condition.arg) + sizeof(std::uint32_t)),
                 jump(BPF_JEQ, 0, miss, 0)});
    return out;
  }
  if (condition.test == Test::any_bit) {
    out.push_back(jump(BPF_JSET, condition.mask, 0, miss));
    return out;
  }
  if (condition.mask != ~0U) out.push_back(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, condition.mask));
  std::size_t left = condition.list().size();
  for (std::uint32_t value : condition.list()) {
    --left;  // comparisons after this one
    if (condition.test == Test::one_of)
      out.push_back(jump(BPF_JEQ, value, left, left == 0 ? miss : 0));
    else
      out.push_back(jump(BPF_JEQ, value, left + miss, 0));
  }
  return out;
}

Program compile(const Refusal& refusal) {
  Program out = {ret(refuse(refusal.err))};
  for (auto it = refusal.when.rbegin(); it != refusal.when.rend(); ++it) {
    Program test = compile(*it, out.size());
    out.insert(out.begin(), test.begin(), test.end());
  }
  return out;
}

// Each call's refusals together, behind one comparison of its number. The list
// loads the number again, so it does not matter what is in the register then.
Program guard(Arch arch, const std::vector<Refusal>& refusals) {
  struct Block {
    int nr;
    Program body;
  };
  std::vector<Block> blocks;
  for (const Refusal& refusal : refusals) {
    std::optional<int> nr = number(arch, refusal.call);
    if (!nr) continue;
    auto block = std::ranges::find(blocks, *nr, &Block::nr);
    if (block == blocks.end()) block = blocks.insert(block, {*nr, {}});
    append(block->body, compile(refusal));
  }

  Program out;
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
    Program body = block->body;
    const auto rest = static_cast<std::uint32_t>(out.size());
    body.push_back(BPF_STMT(BPF_JMP | BPF_JA, rest));  // passed: on to the list
    body.insert(body.begin(), jump(BPF_JEQ, static_cast<std::uint32_t>(block->nr), 0, body.size()));
    out.insert(out.begin(), body.begin(), body.end());
  }
  return out;
}

// ---- the list --------------------------------------------------------------

// What happens to each call by its number. Neighbours mostly share a fate, so the
// program is a balanced tree over the runs of equal ones: a third of the
// instructions that one comparison per call takes, and as much less to load.
class List {
 public:
  List(Arch arch, std::uint32_t otherwise) : arch_(arch), actions_(kNewestCall + 1, otherwise) {}

  void add(std::uint32_t action, std::span<const char* const> calls) {
    for (const char* call : calls) {
      std::optional<int> nr = number(arch_, call);
      if (!nr) continue;
      const auto at = static_cast<std::size_t>(*nr);
      if (at >= actions_.size()) stop(std::string(call) + ": newer than kNewestCall");
      if (!named_.insert(at).second && actions_[at] != action)
        stop(std::string(call) + ": listed twice, with different actions");
      actions_[at] = action;
    }
  }

  Program program() const {
    std::vector<Run> runs;
    for (std::uint32_t nr = 0; nr < actions_.size(); ++nr)
      if (runs.empty() || runs.back().action != actions_[nr]) runs.push_back({nr, actions_[nr]});
    // The guard may have left an argument in the register.
    Program out = {load(offsetof(seccomp_data, nr))};
    append(out, tree(runs));
    return out;
  }

 private:
  struct Run {
    std::uint32_t first;
    std::uint32_t action;
  };

  static Program tree(std::span<const Run> runs) {
    if (runs.size() == 1) return {ret(runs[0].action)};
    const std::size_t middle = runs.size() / 2;
    const Program below = tree(runs.first(middle));
    // One jump reaches 255 instructions; beyond that another takes over.
    Program out;
    if (below.size() <= 255)
      out = {jump(BPF_JGE, runs[middle].first, below.size(), 0)};
    else
      out = {jump(BPF_JGE, runs[middle].first, 0, 1),
             BPF_STMT(BPF_JMP | BPF_JA, static_cast<std::uint32_t>(below.size()))};
    append(out, below);
    append(out, tree(runs.subspan(middle)));
    return out;
  }

  Arch arch_;
  std::vector<std::uint32_t> actions_;
  std::set<std::size_t> named_;
};

Program list(const Variant& variant) {
  bool allow_list = variant.list == Syscalls::allow_list;
  List list(variant.arch, allow_list ? refuse(ENOSYS) : SECCOMP_RET_ALLOW);
  auto absent = [&](std::span<const char* const> calls) {
    if (!allow_list) list.add(refuse(ENOSYS), calls);  // else the default
  };

  for (const Group& group : denied_groups())
    for (const char* call : group.calls)
      if (!variant.joins || std::strcmp(call, kJoin) != 0) list.add(refuse(EPERM), {&call, 1});
  for (const Group& group : absent_groups()) absent(group.calls);
  if (!variant.memfd) absent(memfd_calls());
  if (!allow_list) return list.program();

  for (const Group& group : allowed_groups())
    for (const char* call : group.calls)
      if (variant.memfd || !contains(memfd_calls(), call)) list.add(SECCOMP_RET_ALLOW, {&call, 1});
  return list.program();
}

// ---- all of it -------------------------------------------------------------

Program filter(const Variant& variant) {
  std::vector<Refusal> refused(refusals().begin(), refusals().end());
  auto sockets = variant.network ? socket_refusals() : socket_refusals_without_network();
  refused.insert(refused.end(), sockets.begin(), sockets.end());
  if (!variant.memfd)
    refused.insert(refused.end(), uncounted_refusals().begin(), uncounted_refusals().end());

  Program out = prologue(variant.arch);
  append(out, guard(variant.arch, refused));
  append(out, list(variant));
  if (out.size() > BPF_MAXINSNS) stop(name(variant) + ": too long for the kernel");
  return out;
}

std::vector<Variant> variants() {
  std::vector<Variant> out;
  for (Arch arch : {Arch::x86_64, Arch::aarch64})
    for (Syscalls list : {Syscalls::deny_list, Syscalls::allow_list})
      for (bool network : {true, false})
        for (bool memfd : {true, false}) out.push_back({arch, list, network, memfd});
  for (Arch arch : {Arch::x86_64, Arch::aarch64}) out.push_back({.arch = arch, .joins = true});
  return out;
}

void write_array(std::ostream& out, std::size_t index, const Variant& variant) {
  out << "// " << name(variant) << "\ninline constexpr sock_filter kFilter" << index << "[] = {\n";
  for (const sock_filter& insn : filter(variant))
    out << "    {" << insn.code << ", " << unsigned{insn.jt} << ", " << unsigned{insn.jf} << ", "
        << insn.k << "U},\n";
  out << "};\n\n";
}

void write_entry(std::ostream& out, std::size_t index, const Variant& variant) {
  out << "    {{Arch::" << (variant.arch == Arch::x86_64 ? "x86_64" : "aarch64")
      << ", Syscalls::" << (variant.list == Syscalls::deny_list ? "deny_list" : "allow_list")
      << (variant.network ? ", true" : ", false") << (variant.memfd ? ", true" : ", false")
      << (variant.joins ? ", true" : ", false") << "}, kFilter" << index << "},\n";
}

void write_header(std::ostream& out) {
  out << "// Made by seccomp_compile when belljar is built. The source is in syscall_groups.cc\n"
         "// and syscall_arguments.cc.\n"
         "#pragma once\n\n"
         "#include \"layers/seccomp_variant.h\"\n\n"
         "namespace belljar::seccomp {\n\n";
  const std::vector<Variant> all = variants();
  for (std::size_t i = 0; i < all.size(); ++i) write_array(out, i, all[i]);
  out << "inline constexpr Compiled kCompiled[] = {\n";
  for (std::size_t i = 0; i < all.size(); ++i) write_entry(out, i, all[i]);
  out << "};\n\n}  // namespace belljar::seccomp\n";
}

}  // namespace
}  // namespace belljar::seccomp

int main(int argc, char** argv) {
  using namespace belljar::seccomp;
  if (argc != 2) stop("usage: seccomp_compile OUTPUT");
  std::ofstream out(argv[1]);
  write_header(out);
  out.close();
  if (!out) stop(std::string("cannot write ") + argv[1]);
}
