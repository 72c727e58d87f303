#!/usr/bin/env bash
# Builds and runs the benchmarks and writes their tables into docs/benchmarks.md.
#   run.sh [--check]    --check fails when a target is missed
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

cmake --preset release -DBELLJAR_BENCH=ON >/dev/null
ninja -C build/release
as_user=()
if [[ $EUID -eq 0 ]]; then
  user=belljar-bench
  id "$user" >/dev/null 2>&1 || { useradd -m "$user" && trap 'userdel -r "$user" 2>/dev/null' EXIT; }
  as_user=(--user="$user")
fi
build/release/bench_launch "${as_user[@]}" --doc=docs/benchmarks.md "$@"
build/release/bench_warm "${as_user[@]}" --doc=docs/benchmarks.md "$@"
build/release/bench_steady --doc=docs/benchmarks.md "$@"
bench/session.py --doc=docs/benchmarks.md "$@"
bench/server.py --doc=docs/benchmarks.md "$@"
scripts/setup.sh bench
build/release/bench_tools --doc=docs/benchmarks.md "$@"
# It makes a network of its own, for which it needs root.
if [[ $EUID -eq 0 ]]; then
  build/release/bench_broker --doc=docs/benchmarks.md "$@"
fi
bench/python.py --doc=docs/benchmarks.md "$@"
