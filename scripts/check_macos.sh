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
       -Wno-deprecated-declarations -Werror -nostdinc -nostdinc++
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
echo "macos: ${#sources[@]} files checked for arm64-apple-macos14"
