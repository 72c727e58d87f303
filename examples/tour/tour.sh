#!/usr/bin/env bash
# A tour of belljar: a program like those that coding agents run does useful work, and
# then tries what it should not. Every attempt is one line: what it was, that it was
# stopped, and by which layer; afterwards it is checked from outside that nothing happened.
#   tour.sh BELLJAR        needs bash and python3; touches nothing but a temporary folder
# Exit code 0 only if all that should work worked and all else was stopped.
set -uo pipefail
belljar=${1:?usage: tour.sh BELLJAR}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=/usr/bin/python3
[[ -x $python ]] || python=$(command -v python3) || { echo "the tour needs python3" >&2; exit 1; }

good='' bad='' dim='' bold='' plain=''
if [[ -t 1 && -z ${NO_COLOR:-} && ${TERM:-dumb} != dumb ]]; then
  good=$'\e[32m' bad=$'\e[1;31m' dim=$'\e[2m' bold=$'\e[1m' plain=$'\e[0m'
fi
failures=0
worked() { printf '  %sworks%s    %-46s %s%s%s\n' "$good" "$plain" "$1" "$dim" "$2" "$plain"; }
stopped() { printf '  %sstopped%s  %-46s %s\n' "$good" "$plain" "$1" "$2"; }
held() { printf '  %strue%s     %s\n' "$good" "$plain" "$1"; }
failed() { printf '  %sFAILED%s   %s\n' "$bad" "$plain" "$1"; failures=$((failures + 1)); }

# ---- a home with something to lose, a server and a process of the host ----------
place=$(mktemp -d "${TMPDIR:-/tmp}/belljar-tour-XXXXXX")
pids=()
clean() {
  if [[ ${#pids[@]} -gt 0 ]]; then kill "${pids[@]}" 2>/dev/null; wait "${pids[@]}" 2>/dev/null; fi
  rm -rf "$place"
}
trap clean EXIT
trap 'exit 130' INT TERM HUP
home=$place/home outside=$place/outside work=$place/home/project
mkdir -p "$home/.ssh" "$work" "$outside/photos"
echo "not a real key" >"$home/.ssh/id_ed25519"
echo "a photo" >"$outside/photos/one.jpg"
cp "$here/agent.py" "$work/"
chmod 755 "$place" "$home" "$outside"  # what stops it must not be the mode of a folder

"$python" -u -c '
import socket, sys
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], file=open(sys.argv[1], "w"), flush=True)
while True:
    server.accept()
    print("somebody called", file=open(sys.argv[2], "a"), flush=True)
' "$place/port" "$place/calls" & pids+=($!)
sleep 300 & bystander=$!
pids+=("$bystander")
for _ in {1..100}; do [[ -s $place/port ]] && break; sleep 0.05; done
port=$(<"$place/port")

flags=(--profile=restricted -C "$work" --max-procs=40)
jar() { HOME=$home TOUR_API_TOKEN=not-a-real-token "$belljar" exec "${flags[@]}" "$@"; }

# ---- what belljar says it will enforce here ----------------------------------------
declare -A kept
while IFS=$'\t' read -r promise layers; do kept[$promise]=$layers; done < <(
  HOME=$home "$belljar" explain --json "${flags[@]}" | "$python" -c '
import json, sys
for promise in json.load(sys.stdin)["promises"]:
    print(promise["promise"], ", ".join(promise["kept_by"]), sep="\t")')
by() {  # by PROMISE LAYER DETAIL: the layer, if the plan has it; else all that keep it
  local layers=${kept[$1]:-}
  if [[ $2 == rlimits && ", $layers, " == *", cgroup, "* ]]; then
    layers="cgroup or rlimits"  # both count, and answer alike
  elif [[ -n $2 && ", $layers, " == *", $2, "* ]]; then
    layers=$2
  fi
  echo "by ${layers:-?} $dim($3)$plain"
}

echo "${bold}A program that a model might have written runs under belljar:$plain"
echo "  belljar exec ${flags[*]/$work/PROJECT} -- python3 agent.py"
echo
echo "${bold}What it is for$plain"
ends=0
while IFS=$'\t' read -r verdict what detail promise layer; do
  case $verdict in
    did) worked "$what" "$detail" ;;
    stopped) stopped "$what" "$(by "$promise" "$layer" "$detail")" ;;
    ESCAPED) failed "$what: $detail" ;;
    end) ends=$((ends + 1)); if [[ $ends -eq 1 ]]; then echo; echo "${bold}What it must not$plain"; fi ;;
    *) failed "the agent said: $verdict $what" ;;
  esac
done < <(jar --timeout=30s -- "$python" -I agent.py "$home" "$outside" "$bystander" "$port" 2>&1)
[[ $ends -eq 2 ]] || failed "the agent did not come to its end"

# ---- what ends a guest: a limit, told by the report --------------------------------
limit() {  # limit WHAT REASON LAYER FLAG... -- COMMAND...
  local what=$1 expected=$2 layer=$3 reason=''
  shift 3
  jar --report="$place/report.json" "$@" >/dev/null 2>&1
  reason=$("$python" -c 'import json, sys; print(json.load(open(sys.argv[1]))["reason"])' "$place/report.json" 2>&1 | tail -n 1)
  if [[ $reason == "$expected" ]]; then
    stopped "$what" "by $layer $dim(ended: $reason)$plain"
  else
    failed "$what: $reason"
  fi
  rm -f "$place/report.json"
}
counter=watchdog  # what sums memory up, where no cgroup does
if [[ ", ${kept[limits]:-}, " == *", cgroup, "* ]]; then counter=cgroup; fi
limit "use memory without end, in many processes" "out of memory" "$counter" \
  --max-memory-mb=64 --timeout=10s -- "$python" -I -c 'import os, time
for _ in range(3): os.fork()
memory = bytearray(20 << 20)  # each alone is within the limit
memory[::4096] = b"x" * len(memory[::4096])
time.sleep(10)'
limit "write a file without end" "file size limit" rlimits \
  --max-file-sz-mb=1 --timeout=10s -- sh -c 'exec head -c 100000000 /dev/zero >large'
limit "run for ever" "timeout" "the supervisor" --timeout=500ms -- "$python" -I -c 'while True: pass'

# ---- seen from outside -------------------------------------------------------------
echo
echo "${bold}Seen from outside, afterwards$plain"
check() {  # check CLAIM COMMAND...
  local claim=$1
  shift
  if "$@"; then held "$claim"; else failed "not true: $claim"; fi
}
check "its work is there: report.txt" grep -qx "all done" "$work/report.txt"
check "the key and the photos are as they were" \
  cmp -s <(cat "$home/.ssh/id_ed25519" "$outside/photos/one.jpg") <(printf 'not a real key\na photo\n')
check "nothing was planted beside the project" [ ! -e "$outside/planted" ]
check "nobody called the server on 127.0.0.1:$port" [ ! -e "$place/calls" ]
check "the process $bystander is alive" kill -0 "$bystander"
check "no program has a set-uid bit" [ -z "$(find "$work" -perm /6000)" ]

echo
if [[ $failures -gt 0 ]]; then
  echo "${bad}$failures of these did not hold.$plain"
  exit 1
fi
cat <<END
${bold}Try next$plain  (in a source tree ./run stands for belljar)
  belljar exec -- COMMAND                  your tools on code you do not know
  belljar exec --profile=restricted -- sh  look around in there
  belljar explain --profile=restricted     what is enforced on this machine, by what
  belljar explain --why ~/.ssh             which rule decides about a path
  belljar doctor                           what this machine can do, and what it lacks
END
