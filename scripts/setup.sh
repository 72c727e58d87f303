#!/usr/bin/env bash
# Installs the Debian packages that are missing: setup.sh build|test|check|bench
set -euo pipefail

build=(g++ cmake ninja-build python3 libseccomp-dev libboost-json1.81-dev libfmt-dev libtomlplusplus-dev
       libc-ares-dev libidn2-dev libunistring-dev libedit-dev libre2-dev libyaml-cpp-dev
       libarchive-dev zlib1g-dev libbz2-dev liblzma-dev libzstd-dev nettle-dev)
test=(libgtest-dev libgmock-dev python3-pytest util-linux procps passwd)
# What the compatibility tests run inside a jar, and what the virtual machines are made of.
test+=(git gcc libc6-dev make python3-venv default-jdk-headless nodejs npm cargo rsync less tar
       findutils bsdutils iproute2 strace)
test+=(qemu-system-x86 busybox-static e2fsprogs fakeroot mount mawk netbase ca-certificates cpio
       ncurses-bin bubblewrap)
# What the network tests serve and fetch with. None of these starts a service.
test+=(curl dropbear-bin golang-go jq musl-tools nghttp2-server openssh-client openssl python3-pip
       python3-pytest-xdist python3-requests redis-tools wget)
# What the session tests draw and tabulate with.
test+=(python3-matplotlib python3-numpy python3-pandas python3-pil)
# What the benchmarks measure against.
bench=(ripgrep)
check=(ccache clang-19 clang-tidy-19 clang-format-19 libclang-rt-19-dev)

case "${1:-build}" in
  build) wanted=("${build[@]}") ;;
  test) wanted=("${build[@]}" "${test[@]}") ;;
  check) wanted=("${build[@]}" "${test[@]}" "${check[@]}") ;;
  bench) wanted=("${build[@]}" "${bench[@]}") ;;
  *) echo "usage: setup.sh build|test|check|bench" >&2; exit 2 ;;
esac

# A program may also have come from somewhere else than Debian's package.
have() {
  case "$1" in
    nodejs) [[ -x /usr/bin/node ]] ;;
    npm) [[ -x /usr/bin/npm ]] ;;
    golang-go) [[ -x /usr/bin/go || -x /usr/local/go/bin/go ]] ;;
    default-jdk-headless) [[ -x /usr/bin/javac ]] ;;
    *) [[ "$(dpkg-query -W -f='${db:Status-Abbrev}' "$1" 2>/dev/null)" == ii* ]] ;;
  esac
}
missing=()
for package in "${wanted[@]}"; do have "$package" || missing+=("$package"); done
if [[ ${#missing[@]} -eq 0 ]]; then exit 0; fi

echo "installing: ${missing[*]}"
as_root=()
if [[ $EUID -ne 0 ]]; then
  command -v sudo >/dev/null || { echo "need root or sudo to install: ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
