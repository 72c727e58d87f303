#!/usr/bin/python3
"""Run things on another kernel, in qemu.

    guest = Guest(fetch_kernel(), files={"/belljar/belljar": "build/belljar"}, cmdline="lsm=yama")
    result = guest.run("uname -r; id", timeout=60, user="guest")
    result.exit_code, result.output, result.files

Each run boots a new machine and throws it away. What it brings along and what it hands back are
disks in memory, the root disk is shared and only written to in a layer that has no name, and qemu
dies with the process that started it: nothing is left behind, not even after a SIGKILL.

Kinds of host that belljar must do well on are in CONFIGS; run_suite() runs tests on one.
By hand: tests/vm/vm.py --help, and README.md beside this file.
"""

import argparse
import dataclasses
import functools
import hashlib
import io
import os
import pathlib
import secrets
import selectors
import shlex
import subprocess
import sys
import tarfile
import time

import image
from image import Kernel, Unavailable, fetch_kernel

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent

OUT_BYTES = 256 << 20  # the most that /out may hold; sparse
KVM_TRIAL_SECONDS = 10
SUITE_FOLDERS = ("escape", "compat", "cli", "support")


@dataclasses.dataclass(frozen=True)
class Result:
    exit_code: int  # of the script, as a shell gives it
    output: str  # its stdout and stderr
    files: dict[str, bytes]  # what it left in /out, by path below that
    boot_log: str  # what the machine said before the script began
    boot_seconds: float  # from starting qemu to the script's start


class GuestFailed(Exception):
    """The machine ended without running the script to its end; says what its console showed."""


class GuestTimeout(GuestFailed):
    pass


# --- qemu --------------------------------------------------------------------------------------


def memory_file(name: str, content: bytes = b"", size: int | None = None) -> int:
    fd = os.memfd_create(name)
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]
    if size is not None:
        os.ftruncate(fd, size)
    return fd


def qemu_command(accel: str, kernel: Kernel, initrd_fd: int, cmdline: str, memory_mb: int,
                 cpus: int) -> list[str]:  # fmt: skip
    # Not -M microvm, which boots 0.6 s sooner: its only reference clock is the PIT, and where this
    # computer is busy during the calibration against it (1 boot in 8 was), no timer is left and the
    # kernel hangs without a word. A pc has HPET and the ACPI timer to fall back on. With acpi=off
    # microvm's disks would not be found either: Debian's kernel takes no virtio_mmio.device=.
    if accel == "tcg":
        # An emulated processor has none of the flaws, and the kernel's care about them is slow there.
        cmdline = f"mitigations=off {cmdline}"
    return [
        # Not a wrapper: it sets the signal and becomes qemu.
        image.need_program("setpriv", "util-linux"), "--pdeathsig", "KILL",
        image.need_program("qemu-system-x86_64", "qemu-system-x86"),
        "-M", f"pc,accel={accel}", "-cpu", "max",
        "-m", str(memory_mb), "-smp", str(cpus),
        "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
        "-kernel", str(kernel.image), "-initrd", f"/dev/fd/{initrd_fd}",
        # reboot=t: the triple fault, since there is no keyboard controller to ask.
        "-append", f"console=ttyS0 quiet loglevel=1 panic=-1 reboot=t {cmdline}".strip(),
    ]  # fmt: skip


def disk_options(serial: str, path: str, snapshot: str) -> list[str]:
    return [
        "-drive", f"id={serial},file={path},format=raw,if=none,snapshot={snapshot},cache=unsafe",
        "-device", f"virtio-blk-pci,drive={serial},serial={serial}",
    ]  # fmt: skip


@functools.cache
def accelerator(kernel: Kernel) -> str:
    """kvm where a machine really boots with it, else tcg. BELLJAR_VM_ACCEL overrides.

    Opening /dev/kvm and creating a virtual processor may both succeed where running one never
    returns (nested virtualisation half turned on), so a boot is tried, once for each boot of this
    machine.
    """
    if forced := os.environ.get("BELLJAR_VM_ACCEL"):
        if forced not in ("tcg", "kvm"):
            raise Unavailable(f"BELLJAR_VM_ACCEL is {forced!r}, not tcg or kvm")
        return forced
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "tcg"
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text()
    key = hashlib.sha256(f"{boot} {kernel.folder} {os.geteuid()}".encode()).hexdigest()[:16]
    record = image.cache_folder() / f"accel-{key}"
    with image.locked(image.cache_folder() / ".accel.lock"):
        if not record.exists():
            for old in image.cache_folder().glob("accel-*"):
                old.unlink()
            record.write_text("kvm" if boots_with_kvm(kernel) else "tcg")
    return record.read_text()


def boots_with_kvm(kernel: Kernel) -> bool:
    alive = b"#!/bin/busybox sh\n/bin/busybox echo alive\n/bin/busybox reboot -f\n"
    initrd_fd = memory_file("initrd", image.initramfs(kernel, alive))
    try:
        done = subprocess.run(
            qemu_command("kvm", kernel, initrd_fd, "", 256, 1) + ["-serial", "stdio"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            pass_fds=[initrd_fd], timeout=KVM_TRIAL_SECONDS,
        )  # fmt: skip
        return b"alive" in done.stdout
    except subprocess.TimeoutExpired:
        return False
    finally:
        os.close(initrd_fd)


# --- a machine ---------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Guest:
    kernel: Kernel
    # Path in the machine -> file or folder here, or the content itself.
    files: dict[str, str | pathlib.Path | bytes] = dataclasses.field(default_factory=dict)
    cmdline: str = ""
    sysctls: dict[str, str] = dataclasses.field(default_factory=dict)
    delegate: tuple[str, ...] = ()  # cgroup controllers of a subtree that belongs to the user
    container: bool = False
    memory_mb: int = 2048
    cpus: int = 2

    def run(self, script: str, timeout: float, user: str = "root", stream=None) -> Result:
        """Boot, run the bash script as that user, end. `stream` is written to as output comes."""
        nonce = secrets.token_hex(8)
        begin, finish = f"vm-begin-{nonce}", f"vm-finish-{nonce}"
        settings = {"begin": begin, "finish": finish}
        with self._machine(script, user, settings, interactive=False) as machine:
            console = Console(begin, finish, stream)
            machine.read_console(console, timeout)
            exit_code, files = machine.handed_back()
        # Not by the end of its output: what a test does to the console is lost with it.
        if exit_code is None:
            raise GuestFailed(f"the machine ended early; its console:\n{console.everything()}")
        return Result(exit_code, console.output(), files, console.boot_log(), console.boot_seconds)

    def shell(self, script: str, user: str = "root") -> int:
        """The same, with this terminal as the machine's."""
        size = os.get_terminal_size()
        settings = {
            "terminal": os.environ.get("TERM", "linux"),
            "size": f"cols {size.columns} rows {size.lines}",
        }
        with self._machine(script, user, settings, interactive=True) as machine:
            machine.process.wait()
            return machine.handed_back()[0] or 0

    def _machine(self, script, user, settings, interactive) -> "Machine":
        if user not in ("root", "guest"):
            raise ValueError(f"no user {user!r} in the machine")
        settings = {
            **settings,
            "run_as": user,
            "sysctls": " ".join(f"{name}={value}" for name, value in self.sysctls.items()),
            "delegate": " ".join(self.delegate),
            "container": str(int(self.container)),
            "interactive": str(int(interactive)),
        }
        lines = "".join(f"{name}={shlex.quote(value)}\n" for name, value in settings.items())
        files = {
            "/vm/start": HERE / "guest" / "start",
            "/vm/container.py": HERE / "guest" / "container.py",
            "/vm/settings": lines.encode(),
            "/vm/script": script.encode(),
            **self.files,
        }
        return Machine(self, archive(files), interactive)


def archive(files: dict[str, str | pathlib.Path | bytes]) -> bytes:
    """A tar of the files, all owned by root and readable by everyone."""

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        if os.path.basename(member.name) == "__pycache__":
            return None
        member.uid = member.gid = 0
        member.uname = member.gname = "root"
        member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
        return member

    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path, source in files.items():
            if isinstance(source, bytes):
                member = plain(tarfile.TarInfo(path.lstrip("/")))
                member.size = len(source)
                member.mtime = int(time.time())
                tar.addfile(member, io.BytesIO(source))
            else:
                tar.add(os.path.realpath(source), path.lstrip("/"), filter=plain)
    return out.getvalue()


class Machine:
    """A running qemu and its disks; leaving the `with` block ends it."""

    def __init__(self, guest: Guest, payload: bytes, interactive: bool):
        init = (HERE / "guest" / "init").read_bytes()
        disk = image.disk()
        accel = accelerator(guest.kernel)
        initrd_fd = memory_file("initrd", image.initramfs(guest.kernel, init))
        in_fd = memory_file("in", payload)
        self.out_fd = memory_file("out", size=OUT_BYTES)
        command = qemu_command(
            accel, guest.kernel, initrd_fd, guest.cmdline, guest.memory_mb, guest.cpus
        )
        command += disk_options("root", str(disk), "on")
        command += disk_options("in", f"/dev/fd/{in_fd}", "off")
        command += disk_options("out", f"/dev/fd/{self.out_fd}", "off")
        # signal=off: ctrl-C goes to the program in the machine.
        command += ["-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console"]
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            command, pass_fds=[initrd_fd, in_fd, self.out_fd],
            stdin=None if interactive else subprocess.DEVNULL,
            stdout=None if interactive else subprocess.PIPE,
            stderr=None if interactive else subprocess.STDOUT,
        )  # fmt: skip
        os.close(initrd_fd)
        os.close(in_fd)

    def __enter__(self) -> "Machine":
        return self

    def __exit__(self, *_) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()
        os.close(self.out_fd)

    def read_console(self, console: "Console", timeout: float) -> None:
        """Until the machine ends."""
        deadline = self.started + timeout
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while True:
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    raise GuestTimeout(f"not done after {timeout} s:\n{console.everything()}")
                if not selector.select(remaining):
                    continue
                chunk = os.read(self.process.stdout.fileno(), 65536)
                if not chunk:
                    return
                console.feed(chunk, time.monotonic() - self.started)

    def handed_back(self) -> tuple[int | None, dict[str, bytes]]:
        exit_code, files = None, {}
        with os.fdopen(os.dup(self.out_fd), "rb") as file:
            file.seek(0)
            try:
                with tarfile.open(fileobj=file, mode="r:") as tar:
                    for member in filter(tarfile.TarInfo.isfile, tar):
                        content = tar.extractfile(member).read()
                        if member.name == "vm/exit_code":
                            exit_code = int(content)
                        else:
                            files[member.name.removeprefix("out/")] = content
            except tarfile.ReadError:
                pass  # nothing was written: the machine did not get that far
        return exit_code, files


class Console:
    """Takes the script's output out of what the machine's console shows."""

    def __init__(self, begin: str, finish: str, stream=None):
        self._begin, self._finish = f"{begin}\n".encode(), f"\n{finish}\n".encode()
        self._text = bytearray()
        self._start = None  # of the output in _text
        self._end = None
        self._streamed = 0
        self._stream = stream
        self.boot_seconds = 0.0

    def feed(self, chunk: bytes, seconds: float) -> None:
        self._text += chunk
        if self._start is None:
            at = self._text.find(self._begin)
            if at < 0:
                return
            self._start = self._streamed = at + len(self._begin)
            self.boot_seconds = seconds
        if self._end is None:
            at = self._text.find(self._finish, self._start)
            self._end = None if at < 0 else at
        if self._stream is not None:
            # The marker may be cut by the end of the chunk: hold back what might be its beginning.
            until = self._end
            if until is None:
                until = max(self._streamed, len(self._text) - len(self._finish))
            self._stream.write(self._text[self._streamed : until].decode(errors="replace"))
            self._stream.flush()
            self._streamed = until

    def output(self) -> str:
        return self._text[self._start : self._end].decode(errors="replace")

    def boot_log(self) -> str:
        return self._text[: self._start].decode(errors="replace")

    def everything(self) -> str:
        return self._text.decode(errors="replace")


# --- kinds of host -----------------------------------------------------------------------------

# Debian's CONFIG_LSM without landlock.
NO_LANDLOCK = "lsm=lockdown,yama,loadpin,safesetid,integrity,apparmor,bpf"
NO_USERNS = {"user.max_user_namespaces": "0"}

# Each is proved to be what it says by test_vm.py. In all of them cgroup v2 is mounted and root may
# use it; only `cgroup` gives an ordinary user a part of it.
CONFIGS: dict[str, dict] = {
    "full": {},
    "no-landlock": {"cmdline": NO_LANDLOCK},
    "no-userns": {"sysctls": NO_USERNS},
    "neither": {"cmdline": NO_LANDLOCK, "sysctls": NO_USERNS},
    "container": {"container": True},
    "cgroup": {"delegate": ("memory", "pids")},
}
USERS = ("root", "guest")


def suite_files(binary: str | pathlib.Path | None, tree: pathlib.Path = ROOT) -> dict:
    """What run_suite() puts into the machine."""
    files: dict = {"/belljar/belljar": pathlib.Path(binary)} if binary else {"/belljar/none": b""}
    for name in (*(f"tests/{folder}" for folder in SUITE_FOLDERS), "tests/conftest.py",
                 "pytest.ini", "pyproject.toml"):  # fmt: skip
        if (tree / name).exists():
            files[f"/belljar/{name}"] = tree / name
    return files


def suite_programs(folder: pathlib.Path) -> dict:
    """The small programs of the suites, built here, as the machine has no compiler."""
    files = {}
    for suite in ("escape", "compat"):
        into = folder / suite
        subprocess.run(
            [sys.executable, ROOT / "tests/support/programs.py", ROOT / "tests" / suite / "programs", into],
            check=True, timeout=300,
        )  # fmt: skip
        files[f"/belljar/programs/{suite}"] = into
    return files


def suite_script(config: str, command: str) -> str:
    names = {
        "BELLJAR": "/belljar/belljar",
        "BELLJAR_ESCAPE_PROGRAMS": "/belljar/programs/escape",
        "BELLJAR_COMPAT_PROGRAMS": "/belljar/programs/compat",
        "BELLJAR_MUST_WORK": os.environ.get("BELLJAR_MUST_WORK", ""),
        "BELLJAR_VM_CONFIG": config,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_ADDOPTS": "-p no:cacheprovider",  # /belljar is not the ordinary user's to write
    }
    exports = "".join(f"export {k}={shlex.quote(v)}\n" for k, v in names.items() if v)
    return f"{exports}cd /belljar || exit 125\n{command}\n"


def run_suite(config: str, user: str, command: str, binary: str | pathlib.Path,
              tree: pathlib.Path = ROOT, timeout: float = 1800, stream=sys.stdout,
              kernel: Kernel | None = None, extra: dict | None = None,
              **changes) -> Result:  # fmt: skip
    """Run a command in /belljar, which has the binary and the tests, on that kind of host.

    E.g. command="/usr/bin/python3 -m pytest -q tests/escape". `extra` are more files for
    the machine, `changes` go to Guest.
    """
    settings = {**CONFIGS[config], **changes}
    guest = Guest(kernel or fetch_kernel(), files={**suite_files(binary, tree), **(extra or {})}, **settings)
    return guest.run(suite_script(config, command), timeout, user, stream)


# --- by hand -----------------------------------------------------------------------------------


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Start a test machine: run a command in it, or a shell when there is none."
    )
    parser.add_argument("--config", choices=CONFIGS, default="full")
    parser.add_argument("--user", choices=USERS, default="root")
    parser.add_argument("--belljar", default=os.environ.get("BELLJAR"), help="binary to bring along")
    parser.add_argument("--kernel", help="Debian package (linux-image-cloud-amd64)")
    parser.add_argument("--memory", type=int, default=2048, metavar="MB")
    parser.add_argument("--cpus", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=1800, metavar="SECONDS")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- command")
    asked = parser.parse_args()
    words = asked.command[1:] if asked.command[:1] == ["--"] else asked.command
    try:
        guest = Guest(
            fetch_kernel(asked.kernel),
            files=suite_files(asked.belljar),
            memory_mb=asked.memory, cpus=asked.cpus, **CONFIGS[asked.config],
        )  # fmt: skip
        if not words:
            return guest.shell(suite_script(asked.config, "exec bash -i"), asked.user)
        script = suite_script(asked.config, shlex.join(words))
        result = guest.run(script, asked.timeout, asked.user, sys.stdout)
    except (Unavailable, GuestFailed) as error:
        print(f"vm: {error}", file=sys.stderr)
        return 125
    print(f"vm: booted in {result.boot_seconds:.1f} s", file=sys.stderr)
    return result.exit_code


if __name__ == "__main__":
    sys.exit(main())
