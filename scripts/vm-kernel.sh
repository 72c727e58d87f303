#!/bin/sh
# Fetch a Debian kernel for tests/vm: download the package and unpack it into the test cache.
# Nothing is installed and no root is needed; the running system is not touched.
#
#   scripts/vm-kernel.sh [package]      prints the folder that holds boot/ and lib/modules/
#
# The package is linux-image-cloud-amd64 (Debian 12: Linux 6.1) unless named; a metapackage is
# followed to the image it depends on. A package that is already unpacked is not fetched again;
# VM_KERNEL_REFRESH=1 looks for a newer one.
#
# Debian packages that tests/vm needs:
#   qemu-system-x86 busybox-static e2fsprogs util-linux dpkg apt python3 python3-pytest
#   and fakeroot where the tests are run by an ordinary user;
# and these, which it copies into the machine it starts:
#   bash coreutils findutils tar procps less bsdutils iproute2 strace git rsync
set -eu

package=${1:-linux-image-cloud-amd64}
cache=${BELLJAR_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/belljar-tests}
link=$cache/kernels/$package

if [ -z "${VM_KERNEL_REFRESH:-}" ] && [ -e "$link/boot" ]; then
  readlink -f "$link"
  exit 0
fi

# -dbg and -unsigned images match the same pattern and are not what boots.
image=$(apt-cache depends "$package" |
  sed -n 's/^ *Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1)
[ -n "$image" ] || image=$package
version=$(apt-cache show --no-all-versions "$image" | sed -n 's/^Version: //p' | head -n 1)
if [ -z "$version" ]; then
  echo "vm-kernel: apt knows no package $image (hint: apt-get update)" >&2
  exit 1
fi
folder=$cache/kernels/${image}_$version

if [ ! -e "$folder/boot" ]; then
  mkdir -p "$cache/kernels"
  work=$(mktemp -d "$cache/kernels/.fetch.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  trap 'exit 1' HUP INT TERM
  echo "vm-kernel: downloading $image $version" >&2
  # As root, apt wants to drop to _apt, which cannot write here; the package is checked either way.
  (cd "$work" && apt-get -q -o APT::Sandbox::User=root download "$image" >&2)
  dpkg-deb -x "$work"/*.deb "$work/root"
  chmod 755 "$work/root"
  # Two runs may race; whichever renames first wins, and both are the same.
  mv -T "$work/root" "$folder" 2>/dev/null || [ -e "$folder/boot" ]
fi
ln -sfn "$(basename "$folder")" "$link"
echo "$folder"
