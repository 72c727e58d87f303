#!/usr/bin/env bash
# Lint, layering and sanitizers: check.sh [format|layering|traps|macos|tidy|asan|fuzz]...
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
steps=("$@")
# tidy is not among the defaults: all of it takes a quarter of an hour on two cores.
if [[ ${#steps[@]} -eq 0 ]]; then steps=(format layering traps macos asan fuzz); fi

for step in "${steps[@]}"; do
  began=$SECONDS
  echo "== $step"
  case "$step" in
    format)
      git ls-files '*.cc' '*.h' | xargs clang-format-19 --dry-run --Werror ;;
    layering)
      scripts/check_layering.py ;;
    traps)
      scripts/check_traps.py ;;
    macos)
      scripts/check_macos.sh ;;
    tidy)
      if [[ ! -f build/clang/build.ninja ]]; then cmake --preset clang >/dev/null; fi
      ninja --quiet -C build/clang generated/layers/seccomp_filters.h
      scripts/tidy.py ;;
    asan)
      scripts/build.sh asan
      UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 \
        ctest --test-dir build/asan --output-on-failure -j "$(nproc)" | tail -5 ;;
    fuzz)
      scripts/fuzz.sh 20 ;;
    *) echo "unknown step $step" >&2; exit 2 ;;
  esac
  echo "== $step took $((SECONDS - began)) s"
done
echo "checks: ${#steps[@]} passed, 0 failed"
