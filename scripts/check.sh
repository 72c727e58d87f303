#!/usr/bin/env bash
# Lint, layering and sanitizers: check.sh [format|layering|traps|asan|fuzz|tidy]...
# tidy is not among the defaults: it takes a quarter of an hour on two cores.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
steps=("$@")
if [[ ${#steps[@]} -eq 0 ]]; then steps=(format layering traps asan fuzz); fi

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
    asan)
      scripts/build.sh asan
      UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 \
        ctest --test-dir build/asan --output-on-failure -j "$(nproc)" | tail -5 ;;
    fuzz)
      scripts/fuzz.sh 20 ;;
    tidy)
      scripts/build.sh clang
      git ls-files 'src/*.cc' | grep -v -e init.cc -e _test.cc |
        xargs -P "$(nproc)" -n 4 clang-tidy-19 --quiet -p build/clang ;;
    *) echo "unknown step $step" >&2; exit 2 ;;
  esac
  echo "== $step took $((SECONDS - began)) s"
done
echo "checks: ${#steps[@]} passed, 0 failed"
