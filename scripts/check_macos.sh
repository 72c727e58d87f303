#!/usr/bin/env bash
# Compiles what a Mac would compile, as far as that goes without Apple's SDK: clang for that
# target, the calls of macOS from tests/macos_sdk, C++ and the rest of C from this machine.
# Syntax and types are checked; nothing is linked, and nothing runs. Then what is built where
# there is no sandbox is built and run here: it must refuse.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The same list as in CMakeLists.txt.
mapfile -t sources < <(sed -n '/^set(BELLJAR_MACOS_SRC/,/)/p' CMakeLists.txt | grep -o 'src/[a-z_0-9/]*\.cc')
[[ ${#sources[@]} -gt 10 ]] || { echo "no list of sources in CMakeLists.txt" >&2; exit 1; }

compiler=clang++-19
multiarch=$(dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null || gcc -print-multiarch)
library=$(find /usr/include/c++ -mindepth 1 -maxdepth 1 | sort -V | tail -1)
flags=(-fsyntax-only -std=c++23 -Wall -Wextra -Wshadow -Wconversion -Wno-missing-field-initializers
       -Wno-deprecated-declarations -Werror -nostdinc -nostdinc++ -D_XOPEN_SOURCE=700 -D_DEFAULT_SOURCE
       -U__nonnull  # clang's own for this target, where this machine's C means something else
       -isystem tests/macos_sdk -isystem "$library" -isystem "/usr/include/$multiarch/c++/${library##*/}"
       -isystem "$("$compiler" -print-resource-dir)/include"
       -isystem "/usr/include/$multiarch" -isystem /usr/include -Isrc -Iinclude)

pids=()
for source in "${sources[@]}"; do
  "$compiler" -target arm64-apple-macos14 "${flags[@]}" "$source" &
  pids+=($!)
  if [[ ${#pids[@]} -ge $(nproc) ]]; then wait "${pids[0]}"; pids=("${pids[@]:1}"); fi
done
for pid in "${pids[@]}"; do wait "$pid"; done
# The check itself: what only Linux has is found.
said=$("$compiler" -target arm64-apple-macos14 "${flags[@]}" src/base/fd.cc 2>&1 || true)
[[ $said == *"'pipe2'"* ]] || { echo "macos: pipe2 was let through" >&2; exit 1; }
echo "macos: ${#sources[@]} files checked for arm64-apple-macos14"

# Where there is no sandbox.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/main.cc" - src/launcher/elsewhere.cc src/plan/caller.cc src/base/account.cc \
  src/base/result.cc <<'CODE'
#include "belljar/belljar.h"
int main() {
  const auto outcome = belljar::run({}, {.arguments = {"true"}});
  return !outcome && outcome.error().what.find("no sandbox") != std::string::npos ? 0 : 1;
}
CODE
g++ -std=c++23 -O0 -D_GNU_SOURCE -Isrc -Iinclude "$folder/main.cc" -o "$folder/main"
"$folder/main" || { echo "elsewhere: a command was not refused" >&2; exit 1; }
if cmake -S . -B "$folder/build" -DCMAKE_SYSTEM_NAME=FreeBSD >"$folder/log" 2>&1 ||
   ! grep -q 'no sandbox for FreeBSD' "$folder/log"; then
  echo "elsewhere: CMake does not refuse" >&2
  cat "$folder/log" >&2
  exit 1
fi
echo "elsewhere: refused, by CMake and when run"
