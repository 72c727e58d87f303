#!/usr/bin/env bash
# Builds the fuzz targets and runs each from its seed corpus: fuzz.sh SECONDS
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
seconds=${1:-20}

scripts/build.sh fuzz
found=$(mktemp -d)
trap 'rm -rf "$found"' EXIT
for seeds in fuzz/corpus/*; do
  target=$(basename "$seeds")
  echo "fuzzing $target for $seconds s"
  mkdir "$found/$target"
  "build/fuzz/${target}_fuzz" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
    -artifact_prefix="$found/" -print_final_stats=1 "$found/$target" "$seeds" 2>&1 |
    grep -E 'ERROR|SUMMARY|stat::number_of_executed_units|stat::new_units_added' || true
  if ls "$found"/crash-* "$found"/timeout-* "$found"/oom-* "$found"/leak-* >/dev/null 2>&1; then
    echo "fuzzing $target found:" && ls "$found"
    exit 1
  fi
done
