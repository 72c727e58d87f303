#!/usr/bin/env bash
# Configures and builds one preset, showing progress; says nothing when nothing is to do.
#   build.sh PRESET [cmake options]
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
preset=$1
shift
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1  # another clone of the same need not be built again

if [[ ! -f build/$preset/build.ninja ]]; then
  echo "configuring build/$preset"
  cmake --preset "$preset" "$@" >/dev/null
fi
if ! ninja -C "build/$preset" -n | grep -q 'no work to do'; then
  echo "building build/$preset"
  ninja -C "build/$preset"
fi
