"""What every suite that runs belljar needs: who runs it, where, and what came of it.

    identity   root, or an ordinary user made for the tests
    scene      a place on the host with a workdir, a home with secrets, a neighbour
    runner     `Jar` runs a command under belljar, `Outside` the same without it
    run        exit code, output and report of one command

The binary is named by BELLJAR. Needs nothing but Python's own library.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import os
import pathlib
import pwd
import re
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

PROFILES = ("developer", "restricted", "public-bot")
OWN_FAILURE = 125  # belljar's, not the guest's
TIMED_OUT = 124
TEST_USER = "belljar-test-"
MADE_BY_US = "made by the belljar tests"
NEIGHBOUR_UID = 65534
# How many times slower than a real computer this one may be: an emulated one is. Everything that
# waits waits as much longer, and what is only a large amount is as much smaller.
SLOWER = int(os.environ.get("BELLJAR_TEST_SLOWER", "1"))
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"


def binary() -> str:
    path = os.environ.get("BELLJAR")
    if not path or not os.access(path, os.X_OK):
        raise RuntimeError("BELLJAR must name the belljar binary")
    return os.path.abspath(path)


# ---------------------------------------------------------------- identities


@dataclasses.dataclass(frozen=True)
class Identity:
    """Who starts belljar."""

    name: str  # "root" or "user", as in test ids
    uid: int
    gid: int
    account: str
    folder: str  # where its scenes are made

    def command(self, argv: list[str]) -> list[str]:
        """argv, so that it runs as this identity."""
        if self.uid == os.geteuid():
            return argv
        return [
            "/usr/bin/setpriv", f"--reuid={self.uid}", f"--regid={self.gid}", "--init-groups",
            "--", *argv,
        ]  # fmt: skip

    def own(self, *paths: os.PathLike | str) -> None:
        for path in paths:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)


@contextlib.contextmanager
def identities():
    """{"root": ..., "user": ...}, as far as this process may be them; what was made is removed."""
    with contextlib.ExitStack() as clean:
        if os.geteuid() != 0:
            me = pwd.getpwuid(os.geteuid())
            folder = tempfile.mkdtemp(prefix=".belljar-test-", dir=me.pw_dir)
            clean.callback(shutil.rmtree, folder, ignore_errors=True)
            yield {"user": Identity("user", me.pw_uid, me.pw_gid, me.pw_name, folder)}
            return
        user = clean.enter_context(_test_user())
        # Beside the homes and not below /tmp, which a jar has its own of anyway.
        folder = tempfile.mkdtemp(prefix="belljar-test-root-", dir="/home")
        clean.callback(shutil.rmtree, folder, ignore_errors=True)
        os.chmod(folder, 0o755)
        # Short: the path of a socket has 107 bytes, and process numbers may have seven digits.
        user_folder = tempfile.mkdtemp(prefix="t-", dir=user.pw_dir)
        clean.callback(shutil.rmtree, user_folder, ignore_errors=True)
        for path in (user.pw_dir, user_folder):
            os.chmod(path, 0o755)
        os.chown(user_folder, user.pw_uid, user.pw_gid)
        yield {
            "root": Identity("root", 0, 0, "root", folder),
            "user": Identity("user", user.pw_uid, user.pw_gid, user.pw_name, user_folder),
        }


@contextlib.contextmanager
def _test_user():
    """An ordinary user of this run alone, so that runs at the same time do not meet.

    BELLJAR_TEST_USER names one that is there already, and stays.
    """
    if given := os.environ.get("BELLJAR_TEST_USER"):
        yield pwd.getpwnam(given)
        return
    for left in pwd.getpwall():
        # A run that was killed could not clean up.
        owner = left.pw_name.removeprefix(TEST_USER)
        if left.pw_gecos == MADE_BY_US and owner.isdigit() and not os.path.exists(f"/proc/{owner}"):
            _accounts("userdel", "--remove", left.pw_name)
    name = f"{TEST_USER}{os.getpid()}"
    _accounts("useradd", "--create-home", f"--comment={MADE_BY_US}", "--shell=/bin/sh", name)
    try:
        yield pwd.getpwnam(name)
    finally:
        _accounts("userdel", "--remove", name)


def _accounts(tool: str, *args: str) -> None:
    """These tools give up at once when another holds /etc/passwd."""
    for _ in range(50):
        done = subprocess.run([f"/usr/sbin/{tool}", *args], capture_output=True, text=True)
        if done.returncode != 1 or "lock" not in done.stderr:
            break
        time.sleep(0.1)
    if tool == "useradd" and done.returncode != 0:
        raise RuntimeError(f"{tool}: {done.stderr}")


# --------------------------------------------------------------------- scene


class Scene:
    """A place on the host, owned by an identity, that goes away with the test.

    base/
      home/                 HOME of the caller; .ssh/id_rsa, notes.txt
        project/            .env
          work/             the workdir
      outside/              the caller's too, never granted
      neighbour/            another user's home, for all to read

    Everything may be read, and outside/ written, by everybody: what the guest
    cannot reach it cannot reach because of belljar, not because of a mode.
    """

    def __init__(self, identity: Identity):
        self.identity = identity
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="s-", dir=identity.folder))
        self.home = self.base / "home"
        self.project = self.home / "project"
        self.workdir = self.project / "work"
        self.outside = self.base / "outside"
        self.neighbour = self.base / "neighbour"
        self._numbers = itertools.count()
        self._undo = contextlib.ExitStack()
        self._undo.callback(shutil.rmtree, self.base, ignore_errors=True)
        os.chmod(self.base, 0o755)
        for folder in (self.home, self.project, self.workdir, self.outside, self.neighbour):
            folder.mkdir(mode=0o755)
        os.chmod(self.outside, 0o777)
        # Where belljar says that the guest may use the workdir only as far as everybody may,
        # everybody may: what is denied then is not denied by a mode.
        self.for_everybody = ACCEPTS and _guest_is_everybody(self)
        if self.for_everybody:
            os.chmod(self.workdir, 0o777)
        self.identity.own(self.base, self.home, self.project, self.workdir, self.outside)
        self.ssh_key = self.secret(self.home / ".ssh/id_rsa")
        self.project_env = self.secret(self.project / ".env")
        self.neighbours = self.secret(self.neighbour / "diary.txt")
        if os.geteuid() == 0:
            for path in (self.neighbour, self.neighbour / "diary.txt"):
                os.chown(path, NEIGHBOUR_UID, NEIGHBOUR_UID)

    def __enter__(self) -> Scene:
        return self

    def __exit__(self, *failure) -> None:
        self._undo.close()

    def on_exit(self, deed, *args, **named) -> None:
        self._undo.callback(deed, *args, **named)

    def file(self, path: os.PathLike | str, text: str | bytes = "", mode: int = 0o644) -> pathlib.Path:
        """A file of the identity's; relative to the workdir; folders made as needed."""
        path = self.workdir / path
        for folder in reversed(path.parents):
            if not folder.exists():
                folder.mkdir(mode=0o755)
                os.chmod(folder, self._mode(folder, 0o755))
                self.identity.own(folder)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        os.chmod(path, self._mode(path, mode))
        self.identity.own(path)
        return path

    def folder(self, path: os.PathLike | str, mode: int = 0o755) -> pathlib.Path:
        path = self.workdir / path
        for folder in reversed((path / "x").parents):
            if not folder.exists():
                folder.mkdir(mode=0o755)
                os.chmod(folder, self._mode(folder, 0o755))
                self.identity.own(folder)
        os.chmod(path, self._mode(path, mode))
        return path

    def _mode(self, path: pathlib.Path, mode: int) -> int:
        return mode | 0o066 if self.for_everybody and path.is_relative_to(self.workdir) else mode

    def secret(self, path: os.PathLike | str, mode: int = 0o644) -> str:
        """Plants a file with a text found nowhere else, and returns the text."""
        text = f"belljar-secret-{secrets.token_hex(12)}"
        self.file(path, text + "\n", mode)
        return text

    def spare(self, stem: str) -> pathlib.Path:
        """A name in base that nobody has, for reports and sockets."""
        return self.base / f"{stem}-{next(self._numbers)}"


def snapshot(root: os.PathLike | str) -> dict[str, tuple]:
    """Everything that can be seen at and below a path: to compare before and after."""
    seen: dict[str, tuple] = {}

    def look(path: str) -> None:
        try:
            info = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return
        content: object = None
        kind = info.st_mode & 0o170000
        if kind == 0o120000:
            content = os.readlink(path)
            # What the path means is what it leads to.
            if path == os.fspath(root):
                look(os.path.realpath(path))
        elif kind == 0o100000:
            content = pathlib.Path(path).read_bytes()
        elif kind == 0o040000:
            content = tuple(sorted(os.listdir(path)))
            for name in content:
                look(os.path.join(path, name))
        attributes = tuple(sorted(os.listxattr(path, follow_symlinks=False)))
        seen[os.path.relpath(path, root)] = (
            info.st_mode, info.st_uid, info.st_gid, attributes, content,
            (info.st_mtime_ns, info.st_nlink) if kind == 0o100000 else None,
        )  # fmt: skip

    look(os.fspath(root))
    return seen


# -------------------------------------------------------------------- runner


@dataclasses.dataclass
class Run:
    argv: list[str]
    exit: int  # as a shell counts: 128 + signal where a signal ended belljar itself
    stdout: str
    stderr: str
    report: dict | None
    seconds: float
    hung: bool = False  # it had to be killed

    def __str__(self) -> str:
        return (
            f"$ {' '.join(self.argv)}\nexit {self.exit} after {self.seconds:.1f} s"
            f"{' (hung, killed)' if self.hung else ''}\n"
            f"--- stdout\n{self.stdout[-4000:]}\n--- stderr\n{self.stderr[-4000:]}\n--- report\n{self.report}"
        )


class Runner:
    """Runs commands for an identity in a scene's workdir, with a clean environment."""

    def __init__(self, scene: Scene):
        self.scene = scene
        self.identity = scene.identity

    def argv(self, command, policy, report) -> list[str]:
        raise NotImplementedError

    def inside(self, path: os.PathLike | str) -> str:
        """A path of the host as the command sees it."""
        return os.fspath(path)

    def environment(self, extra: dict[str, str] | None = None) -> dict[str, str]:
        return {
            "PATH": SYSTEM_PATH,
            "HOME": os.fspath(self.scene.home),
            "USER": self.identity.account,
            "LOGNAME": self.identity.account,
            "LANG": "C.UTF-8",
            **(extra or {}),
        }

    def start(self, command, *, policy=(), env=None, report=None, cwd=None, **popen) -> subprocess.Popen:
        """Starts it, in a session of its own, so that what it does to its group stops there."""
        popen.setdefault("stdin", subprocess.DEVNULL)
        popen.setdefault("stdout", subprocess.PIPE)
        popen.setdefault("stderr", subprocess.PIPE)
        popen.setdefault("start_new_session", True)
        return subprocess.Popen(
            self.identity.command(self.argv(list(map(os.fspath, command)), policy, report)),
            cwd=cwd or self.scene.workdir, env=self.environment(env), **popen,
        )  # fmt: skip

    def run(self, command, *, policy=(), env=None, timeout=30.0, input=None, report=None, **popen) -> Run:
        report = report or self.scene.spare("report.json")
        if input is not None:
            popen["stdin"] = subprocess.PIPE
        begin = time.monotonic()
        process = self.start(command, policy=policy, env=env, report=report, **popen)
        hung = False
        try:
            out, err = process.communicate(input, timeout=timeout * SLOWER)
        except subprocess.TimeoutExpired:
            hung = True
            # The group is this command's own.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.kill()
            try:
                out, err = process.communicate(timeout=5)
            except subprocess.TimeoutExpired:
                out, err = b"", b"(its output stayed open)"
        code = process.returncode
        return Run(
            argv=process.args,
            exit=128 - code if code < 0 else code,
            stdout=(out or b"").decode(errors="surrogateescape"),
            stderr=(err or b"").decode(errors="surrogateescape"),
            report=_load(report),
            seconds=time.monotonic() - begin,
            hung=hung,
        )


class RefusedAsExpected(Exception):
    """This caller gets no jar on this host, belljar said so, and the test was told it would."""


# What this host refuses its callers outright, by name of identity, as tests/vm tells: then every
# jar must be refused with that text. Not of use where a loss can be accepted instead.
REFUSES = json.loads(os.environ.get("BELLJAR_TEST_REFUSES", "{}"))
# On a host that cannot keep a promise, the tests are the person who accepts its loss, so that the
# other promises can be tried. What is accepted is only what belljar itself asks to accept.
# Refusals of what the test asks for, which come before the host is looked at.
BEFORE_THE_HOST = (": is empty", "/belljar.toml", "descriptor 0 is ", "not a regular file")
ACCEPTS = os.environ.get("BELLJAR_TEST_ACCEPTS") == "1"


class Jar(Runner):
    """Under belljar."""

    def __init__(self, scene: Scene, profile: str | None = None):
        super().__init__(scene)
        self.profile = profile
        self.plans: list[dict] = []  # of each command, as `explain` gives them on a poor host

    def argv(self, command, policy, report):
        if self.profile is not None:
            policy = [f"--profile={self.profile}", *policy]
        policy = [*policy]
        if ACCEPTS and "--sandbox=on" not in policy:
            policy += self.acceptance(policy)
        if report is not None:
            policy.append(f"--report={report}")
        return self.brought([binary(), "exec", *policy, "--", *command])

    def brought(self, argv: list[str]) -> list[str]:
        """The command that runs this one where the test wants it."""
        return argv

    def start(self, command, **how):
        process = super().start(command, **how)
        if expected := REFUSES.get(self.identity.name):
            out, err = process.communicate(timeout=30 * SLOWER)
            assert process.returncode == OWN_FAILURE, f"not refused: {process.args}"
            assert not out, f"refused, but ran: {out}"
            # Mistakes of the test's own are found first; where it does not listen, nothing is heard.
            said = err.decode() if err is not None else f"{expected} hint:"
            earlier = any(part in said for part in BEFORE_THE_HOST)
            assert earlier or (expected in said and "hint:" in said), said
            raise RefusedAsExpected
        return process

    def refused_if_expected(self) -> None:
        """For who starts belljar in a way of its own: where this caller gets no jar, that is all."""
        if self.identity.name in REFUSES:
            self.run(["/bin/true"])

    def explain(self, policy) -> tuple[subprocess.CompletedProcess, dict]:
        done = subprocess.run(
            self.identity.command(self.brought([binary(), "explain", "--json", *policy])),
            cwd=self.scene.workdir, env=self.environment(), capture_output=True, text=True,
            stdin=subprocess.DEVNULL, timeout=60,
        )  # fmt: skip
        return done, json.loads(done.stdout) if done.stdout else {}

    def losses(self) -> list[str]:
        """What belljar said it does not keep in full here, before what ran."""
        told = [loss["what"] for plan in self.plans for loss in plan.get("losses", [])]
        return told + [warning for plan in self.plans for warning in plan.get("warnings", [])]

    def acceptance(self, policy) -> list[str]:
        """The flags that belljar says a person may give to start here all the same."""
        # Which paths does not matter, that there are some does.
        shape = tuple(flag if flag.startswith(("--profile=", "--network=")) else flag.split("=")[0] for flag in policy)
        key = (type(self), self.identity.name, shape)
        if key not in _plans:
            done, plan = self.explain(policy)
            flags = re.findall(r"--accept-degraded=\w+", done.stderr) if done.returncode == OWN_FAILURE else []
            broken = {loss["promise"] for loss in plan.get("losses", []) if loss["broken"]}
            assert {flag.split("=")[1] for flag in flags} <= broken, f"asks to accept what is not lost: {done}"
            if not plan:
                return []  # a mistake in the policy, perhaps the point of the test
            _plans[key] = plan, flags
        plan, flags = _plans[key]
        self.plans.append(plan)
        return flags

    def inside(self, path):
        path = pathlib.PurePath(path)
        if self.profile == "public-bot" and path.is_relative_to(self.scene.workdir):
            return os.fspath("/workspace" / path.relative_to(self.scene.workdir))
        return os.fspath(path)


class Outside(Runner):
    """Without belljar: what the same command does there is the control. A policy means nothing."""

    prefix: tuple[str, ...] = ()  # such as `unshare --mount`, for what must not touch the machine

    def argv(self, command, policy, report):
        return [*self.prefix, *command]


_everybody: dict[str, bool] = {}


def _guest_is_everybody(scene: Scene) -> bool:
    who = scene.identity.name
    if who not in _everybody:
        losses = Jar(scene).explain(["--profile=developer"])[1].get("losses", [])
        _everybody[who] = any("only as far as everybody may" in loss["what"] for loss in losses)
    return _everybody[who]


_plans: dict[tuple, tuple[dict, list[str]]] = {}


def _load(path: pathlib.Path) -> dict | None:
    return json.loads(path.read_bytes()) if path.is_file() and path.stat().st_size else None


# ------------------------------------------------------------- on the host's side


class Listener:
    """A service of the host's, which notes who called. For TCP, UDP and Unix sockets."""

    def __init__(self, family: int, kind: int, address, identity: Identity | None = None):
        self.calls: list[bytes] = []
        self.socket = socket.socket(family, kind)
        if family in (socket.AF_INET, socket.AF_INET6):
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(address)
        if family == socket.AF_UNIX and isinstance(address, str) and not address.startswith("\0"):
            os.chmod(address, 0o777)
            if identity:
                identity.own(address)
        if kind != socket.SOCK_DGRAM:
            self.socket.listen(8)
        self.address = self.socket.getsockname()
        self._kind = kind
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return self.address[1]

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                if self._kind != socket.SOCK_DGRAM:
                    caller, _ = self.socket.accept()
                    self.calls.append(b"connected")
                    caller.close()
                else:
                    self.calls.append(self.socket.recv(4096))

    def called(self, patience: float = 0.3) -> bool:
        """Whether anybody has called, after waiting a little for the slow."""
        end = time.monotonic() + patience * SLOWER
        while not self.calls and time.monotonic() < end:
            time.sleep(0.02)
        return bool(self.calls)

    def close(self) -> None:
        # A blocked accept does not notice close alone.
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


class Bystander:
    """A process of the identity's outside any jar, which notes SIGURG and has a secret in it."""

    CODE = """
import ctypes, os, signal, sys, time
seen = open(sys.argv[1], "a", buffering=1)
signal.signal(signal.SIGURG, lambda *_: seen.write("SIGURG\\n"))
text = ctypes.create_string_buffer(os.environ["BYSTANDER_SECRET"].encode())
print(os.getpid(), os.getpgrp(), hex(ctypes.addressof(text)), len(text), flush=True)
end = time.monotonic() + 600
while time.monotonic() < end:
    time.sleep(0.2)
"""

    def __init__(self, scene: Scene, group: int | None = None):
        self.secret = f"belljar-secret-{secrets.token_hex(12)}"
        self.notes = scene.spare("bystander")
        self.process = subprocess.Popen(
            scene.identity.command(["/usr/bin/python3", "-I", "-c", self.CODE, os.fspath(self.notes)]),
            cwd="/", env={"PATH": SYSTEM_PATH, "BYSTANDER_SECRET": self.secret},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, process_group=group or 0,
        )  # fmt: skip
        scene.on_exit(self.close)
        line = self.process.stdout.readline().split()
        self.pid, self.group = int(line[0]), int(line[1])
        self.address, self.length = line[2].decode(), int(line[3])

    def harmed(self, patience: float = 0.3) -> bool:
        """Killed, stopped or signalled."""
        end = time.monotonic() + patience * SLOWER
        while True:
            if self.process.poll() is not None or self.notes.read_text():
                return True
            if time.monotonic() > end:
                return False
            time.sleep(0.02)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def processes_with(mark: str) -> list[int]:
    """Processes of the host, in whatever namespace, whose command line has this mark."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        with contextlib.suppress(OSError):
            words = pathlib.Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0")
            if mark.encode() in words:
                found.append(int(entry))
    return found


def has_capability(number: int) -> bool:
    """Whether this process has it: root is not always all of root."""
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> number & 1)
    return False
