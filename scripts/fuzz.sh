#!/usr/bin/env bash
# Builds the fuzz targets and runs each from its seed corpus: fuzz.sh SECONDS
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
seconds=${1:-20}

scripts/build.sh fuzz
found=$(mktemp -d)
trap 'rm -rf "$found"' EXIT
fuzz() {  # fuzz SEEDS: one target
  local target code=0
  target=$(basename "$1")
  mkdir "$found/$target" "$found/of-$target"
  "build/fuzz/${target}_fuzz" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
    -artifact_prefix="$found/of-$target/" -print_final_stats=1 "$found/$target" "$1" \
    >"$found/log-$target" 2>&1 || code=$?
  grep -E 'ERROR|SUMMARY|stat::number_of_executed_units|stat::new_units_added' "$found/log-$target" |
    sed "s/^/$target: /"
  if [[ $code -ne 0 ]]; then
    echo "fuzzing $target failed with $code:" && tail -5 "$found/log-$target" && ls "$found/of-$target"
    return 1
  fi
}
export -f fuzz
export found seconds
echo "fuzzing each target for $seconds s"
# xargs ends with an error if one of them found something.
printf '%s\n' fuzz/corpus/* | xargs -P "$(nproc)" -I{} bash -c 'fuzz {}'
