"""What a test machine boots from: a kernel, a tiny initramfs, a disk with Debian's own programs.

The disk is an ext4 image holding the files of the packages in PACKAGES and of everything they
depend on, copied from this machine. ext4 is built into Debian's cloud kernel, it can be idmapped
(tmpfs cannot on 6.1), and it is a root that can be pivoted away from, which an initramfs is not.

The disk is built once for each set of installed packages and kept in the cache; a machine only
ever writes to a throw-away layer above it.
"""

import contextlib
import fcntl
import functools
import hashlib
import io
import lzma
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent

# What the tests run, beyond Debian's essential packages; dependencies are followed.
PACKAGES = (
    "bash busybox-static ca-certificates git iproute2 less libc-bin mawk mount ncurses-bin "
    "netbase procps python3 python3-pytest strace util-linux"
).split()
# Copied when installed, and named in the report of the tests when not. BELLJAR_VM_PACKAGES adds
# more (e.g. "gcc libc6-dev").
OPTIONAL_PACKAGES = ["rsync", *os.environ.get("BELLJAR_VM_PACKAGES", "").split()]

# No program needs these to run, and they are half of the files.
LEFT_OUT = (
    "/usr/share/doc/", "/usr/share/man/", "/usr/share/info/", "/usr/share/locale/",
    "/usr/share/lintian/", "/usr/share/bash-completion/", "/usr/share/zoneinfo/",
    "/usr/share/perl/", "/usr/lib/x86_64-linux-gnu/gconv/", "/usr/lib/x86_64-linux-gnu/perl/",
)  # fmt: skip

# Made by maintainer scripts, so no package lists them.
UNLISTED = (
    "/etc/ld.so.cache", "/etc/nsswitch.conf", "/etc/localtime", "/etc/ssl/certs/ca-certificates.crt",
)  # fmt: skip

WRITTEN = {
    "/etc/passwd": "root:x:0:0:root:/root:/bin/bash\n"
    "daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
    "guest:x:1000:1000:guest:/home/guest:/bin/bash\n"
    "other:x:1001:1001:other:/home/other:/bin/bash\n"
    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    "/etc/group": "root:x:0:\ndaemon:x:1:\ntty:x:5:\nguest:x:1000:\nother:x:1001:\n"
    "nogroup:x:65534:\n",
    "/etc/shadow": "root:*:19000:0:99999:7:::\nguest:*:19000:0:99999:7:::\n",
    "/etc/hosts": "127.0.0.1 localhost belljar-vm\n::1 localhost\n",
    "/etc/hostname": "belljar-vm\n",
    "/etc/resolv.conf": "nameserver 127.0.0.1\n",
}
# 755 for all the others; the homes are given to their users at boot.
FOLDERS = {
    "/dev": 0o755, "/proc": 0o555, "/sys": 0o555, "/run": 0o755, "/tmp": 0o1777,
    "/var/tmp": 0o1777, "/root": 0o700, "/home/guest": 0o755, "/home/other": 0o700,
    "/mnt": 0o755, "/out": 0o1777,
}  # fmt: skip

SPARE_BYTES = 3 << 30  # free space on the disk; sparse, so it costs nothing until written

# The drivers for the disks; overlay because attackers like to mount it.
MODULES = ["virtio_pci", "virtio_blk", "overlay"]


class Unavailable(Exception):
    """The machine cannot be made here; the message says what is missing and how to get it."""


def cache_folder() -> pathlib.Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(os.environ.get("BELLJAR_TEST_CACHE") or os.path.join(base, "belljar-tests"))


class Kernel:
    """An unpacked Debian kernel package."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.image = next(iter(sorted(folder.glob("boot/vmlinuz-*"))), None)
        if self.image is None:
            raise Unavailable(f"no kernel in {folder}/boot")
        self.release = self.image.name.removeprefix("vmlinuz-")

    def module(self, name: str) -> bytes | None:
        """The module's bytes, or None when it is built in (or this kernel has none)."""
        for path in self.folder.glob(f"lib/modules/{self.release}/**/{name}.ko*"):
            data = path.read_bytes()
            return lzma.decompress(data) if path.suffix == ".xz" else data
        return None

    def modules(self, names: list[str]) -> dict[str, bytes]:
        """These and what they depend on, which differs between versions, in the order of loading."""
        found: dict[str, bytes] = {}
        for name in names:
            data = self.module(name)
            if data is None or name in found:
                continue
            depends = re.search(rb"\0depends=([^\0]*)\0", data)
            found.update(self.modules(depends[1].decode().split(",") if depends and depends[1] else []))
            found[name] = data
        return found


@functools.cache
def fetch_kernel(package: str | None = None) -> Kernel:
    """The kernel of that Debian package, downloaded when the cache has none."""
    package = package or os.environ.get("BELLJAR_VM_KERNEL") or "linux-image-cloud-amd64"
    done = subprocess.run(
        [ROOT / "scripts" / "vm-kernel.sh", package], stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    if done.returncode != 0:
        raise Unavailable(f"fetching {package} failed: {done.stderr.strip()}")
    return Kernel(pathlib.Path(done.stdout.strip().splitlines()[-1]))


def need_program(name: str, package: str) -> str:
    # mkfs.ext4 lives in /usr/sbin, which is not in an ordinary user's PATH.
    found = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if found is None:
        raise Unavailable(f"{name} is not here (hint: apt-get install {package})")
    return found


# --- the initramfs -----------------------------------------------------------------------------


def cpio(entries: list[tuple[str, int, bytes]]) -> bytes:
    """A "newc" archive of (path, mode, content), all owned by root."""
    out = io.BytesIO()
    for inode, (path, mode, content) in enumerate([*entries, ("TRAILER!!!", 0, b"")], start=1):
        name = path.encode() + b"\0"
        fields = [inode, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name), 0]
        out.write(b"070701" + b"".join(b"%08x" % f for f in fields) + name)
        out.write(b"\0" * (-out.tell() % 4))
        out.write(content)
        out.write(b"\0" * (-out.tell() % 4))
    return out.getvalue()


def initramfs(kernel: Kernel, init: bytes) -> bytes:
    busybox = pathlib.Path(need_program("busybox", "busybox-static")).read_bytes()
    if b"/lib64/ld-linux-x86-64" in busybox[:4096]:
        raise Unavailable("busybox is not static (hint: apt-get install busybox-static)")
    folder, program, file = 0o040755, 0o100755, 0o100644
    entries = [(name, folder, b"") for name in ("bin", "dev", "proc", "sys", "disk", "modules")]
    entries += [("bin/busybox", program, busybox), ("init", program, init)]
    modules = kernel.modules(MODULES)
    entries += [(f"modules/{name}.ko", file, data) for name, data in modules.items()]
    entries.append(("modules/order", file, "".join(f"{n}\n" for n in modules).encode()))
    return cpio(entries)


# --- the disk ----------------------------------------------------------------------------------


@functools.cache
def installed_packages() -> dict[str, tuple[str, str, bool]]:
    """Name -> (version, everything it depends on, essential) of each installed package."""
    need_program("dpkg-query", "dpkg")
    listing = subprocess.run(
        ["dpkg-query", "-W", "-f",
         "${db:Status-Status}|${Package}|${Version}|${Pre-Depends}, ${Depends}|${Essential}\n"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    found = {}
    for line in listing.splitlines():
        status, name, version, rest = line.split("|", 3)
        depends, essential = rest.rsplit("|", 1)  # alternatives in depends are written with "|"
        if status == "installed":
            found[name] = (version, depends, essential == "yes")
    return found


def wanted_packages() -> list[str]:
    """PACKAGES, the essential ones, and all they depend on."""
    installed = installed_packages()
    if missing := [p for p in PACKAGES if p not in installed]:
        raise Unavailable(f"not installed (hint: apt-get install {' '.join(missing)})")
    todo = PACKAGES + [p for p in OPTIONAL_PACKAGES if p in installed]
    todo += [name for name, (_, _, essential) in installed.items() if essential]
    seen: set[str] = set()
    while todo:
        name = todo.pop()
        if name in seen or name not in installed:
            continue  # not installed: the other side of an alternative, or a virtual package
        seen.add(name)
        todo += re.findall(r"(?:^|[,|])\s*([a-z0-9][a-z0-9.+-]*)", installed[name][1])
    return sorted(seen)


def missing_optional_packages() -> list[str]:
    return [p for p in OPTIONAL_PACKAGES if p not in installed_packages()]


def disk_key() -> str:
    """Changes when the recipe or any installed package does."""
    digest = hashlib.sha256(pathlib.Path(__file__).read_bytes())
    digest.update(repr(OPTIONAL_PACKAGES).encode())
    for name, (version, _, _) in sorted(installed_packages().items()):
        digest.update(f"{name} {version}\n".encode())
    return digest.hexdigest()[:16]


def host_files() -> list[str]:
    """Absolute paths on this machine, files and links, that go onto the disk."""
    listing = subprocess.run(
        ["dpkg-query", "-L", *wanted_packages()], capture_output=True, text=True, check=True
    ).stdout
    paths = {line for line in listing.splitlines() if line.startswith("/")}
    paths |= set(UNLISTED)
    for record in pathlib.Path("/var/lib/dpkg/alternatives").iterdir():
        link = record.read_text().splitlines()[1]  # e.g. /usr/bin/awk
        paths |= {link, f"/etc/alternatives/{record.name}"}
    # Without the byte code, starting python under emulation takes several times as long.
    for source in [p for p in paths if p.endswith(".py")]:
        folder, name = os.path.split(source)
        paths |= {str(p) for p in pathlib.Path(folder, "__pycache__").glob(name[:-3] + ".*.pyc")}
    return sorted(p for p in paths if not p.startswith(LEFT_OUT))


def stage(folder: pathlib.Path) -> None:
    """Lay out the disk's tree in `folder`."""
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        if os.path.islink(f"/{name}"):
            os.symlink(os.readlink(f"/{name}"), folder / name)
            (folder / os.readlink(f"/{name}")).mkdir(parents=True, exist_ok=True)
    for path in host_files():
        if path in WRITTEN or not os.path.lexists(path):
            continue
        # Packages say /bin/bash where the file is /usr/bin/bash.
        parent, name = os.path.split(path)
        target = folder / os.path.realpath(parent).lstrip("/") / name
        if os.path.isdir(path) and not os.path.islink(path):
            target.mkdir(parents=True, exist_ok=True)
        elif os.path.islink(path) or (os.path.isfile(path) and os.access(path, os.R_OK)):
            target.parent.mkdir(parents=True, exist_ok=True)
            if not os.path.lexists(target):
                shutil.copy2(path, target, follow_symlinks=False)
    for path, mode in FOLDERS.items():
        (folder / path[1:]).mkdir(parents=True, exist_ok=True)
        (folder / path[1:]).chmod(mode)
    for path, text in WRITTEN.items():
        (folder / path[1:]).write_text(text)
    (folder / "etc/shadow").chmod(0o600)


def build_disk(target: pathlib.Path) -> None:
    mkfs = [need_program("mkfs.ext4", "e2fsprogs")]
    if os.geteuid() != 0:
        mkfs.insert(0, need_program("fakeroot", "fakeroot"))  # the files must belong to root
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".disk.") as work:
        tree, image = pathlib.Path(work, "tree"), pathlib.Path(work, "image")
        tree.mkdir()
        tree.chmod(0o755)
        stage(tree)
        used = sum(p.lstat().st_size + 4096 for p in tree.rglob("*"))
        with open(image, "wb") as file:
            file.truncate(used + used // 8 + SPARE_BYTES >> 20 << 20)
        # No journal: nothing here outlives a run.
        subprocess.run(
            [*mkfs, "-q", "-F", "-m", "0", "-O", "^has_journal", "-d", tree, image],
            stdin=subprocess.DEVNULL, check=True, timeout=300,
        )  # fmt: skip
        os.rename(image, target)


@contextlib.contextmanager
def locked(path: pathlib.Path):
    """So that two test runs do not build the same thing twice."""
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@functools.cache
def disk() -> pathlib.Path:
    """The disk image, built when the cache has none for this set of packages."""
    folder = cache_folder() / "disks"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{disk_key()}.ext4"
    with locked(folder / ".lock"):
        if not path.exists():
            for old in folder.glob("*.ext4"):  # a running machine keeps its own open
                old.unlink()
            build_disk(path)
    return path
