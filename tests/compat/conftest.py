"""Ordinary programs must just work in a jar: four runs of each test, two profiles by two callers.

Debian packages that the tests need (./test installs them):
    bash bsdutils cargo coreutils default-jdk-headless diffutils findutils gcc git less libc6-dev
    make nodejs npm procps python3 python3-pytest python3-venv rsync tar util-linux

A missing tool skips its test, which is a failure where BELLJAR_MUST_WORK=1. What needs a large
tool is marked `heavy`, so that a small machine can leave it out: pytest -m "not heavy".
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pathlib
import random
import shlex
import shutil
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import jar as jars  # noqa: E402
from programs import Programs  # noqa: E402
from terminal import Terminal  # noqa: E402

PROFILES = ("developer", "restricted")
PATIENCE = 60 * jars.SLOWER  # seconds that any one belljar may live, whatever happens


def pytest_configure(config):
    config.addinivalue_line("markers", "heavy: needs a large tool, such as a JDK")


@pytest.fixture(params=PROFILES)
def profile(request):
    return request.param


class Everyday(jars.Jar):
    """A jar as a person uses it: no report, and everything that ran is printed."""

    def argv(self, command, policy, report):
        inner = super().argv(command, policy, None)
        return ["/usr/bin/timeout", "--signal=KILL", str(PATIENCE), *inner]

    def prefix(self, *policy: str) -> str:
        """The words that put a command of a shell script under belljar."""
        self.refused_if_expected()
        return shlex.join(self.argv([], policy, None))

    def said(self, *parts: str) -> bool:
        """Whether belljar names one of these among what it loses on this host."""
        return any(part in what for part in parts for what in self.losses())

    def run(self, command, **how):
        run = super().run(command, **how)
        print(run)
        assert not run.hung, "did not end"
        return run

    def ok(self, command, **how) -> str:
        """Runs it, expects success, returns its output."""
        run = self.run(command, **how)
        assert run.exit == 0
        return run.stdout

    def shell(self, script: str, *arguments, **how) -> str:
        return self.ok(["/bin/sh", "-ec", script, "sh", *arguments], **how)

    def python(self, code: str, *arguments, **how) -> str:
        """The code is a file, as for people; multiprocessing's children read it again."""
        self.scene.file("program.py", code)
        return self.ok(["/usr/bin/python3", "program.py", *arguments], **how)

    def from_shell(self, script: str, *, env=None, timeout=30.0, cwd=None, **popen) -> jars.Run:
        """Runs a script OUTSIDE, as the identity, in which `$JAR command` runs one inside."""
        run = jars.Outside(self.scene).run(
            ["/bin/bash", "-c", script.replace("$JAR", self.prefix())],
            env=env, timeout=timeout, cwd=cwd, **popen,
        )  # fmt: skip
        print(run)
        assert not run.hung, "did not end"
        return run

    def terminal(self, *, term="dumb") -> Terminal:
        """An interactive shell OUTSIDE, on a terminal of its own, with $JAR set.

        $INNER is the same for a shell inside, whose prompt is `inner>`.
        """
        self.refused_if_expected()
        # belljar must be the shell's own child, as it is for a person, so no `timeout` stands
        # between: it ends with the shell's terminal, and the shell in time.
        limit = f"--timeout={PATIENCE}"
        env = self.environment({
            "TERM": term,
            "PS1": "outer> ",
            "JAR": " ".join(super().argv([], [limit], None)),
            "INNER": " ".join(super().argv([], [limit, "--env=PS1=inner>"], None)),
        })  # fmt: skip
        shell = ["/bin/bash", "--norc", "--noprofile", "--noediting", "-i"]
        argv = self.identity.command(["/usr/bin/timeout", "--foreground", "--signal=KILL", str(PATIENCE), *shell])
        return Terminal(argv, cwd=self.scene.workdir, env=env, owner=self.identity.uid)


# What cannot work on a poor host, by words of what belljar warns of there.
CANNOT = {
    "the guest has no /proc and no shared memory": {
        "test_multiprocessing", "test_multiprocessing_without_fork", "test_only_three_descriptors_are_inherited",
        "test_closed_descriptors", "test_ps", "test_ps_aux", "test_free", "test_uptime", "test_top",
        "test_nproc_and_cpuinfo",
    },
    "only as far as everybody may": {
        "test_umask_is_kept", "test_files_can_be_linked_moved_locked_and_changed", "test_tar",
        "test_git_init_commit_clone", "test_git_in_a_repository_of_the_callers",
    },
}  # fmt: skip


@pytest.fixture
def jar(scene, profile, request):
    jar = Everyday(scene, profile)
    if not jars.ACCEPTS:
        return jar
    jar.acceptance([f"--profile={profile}"])
    for words, tests in CANNOT.items():
        if request.node.originalname in tests and jar.said(words):
            request.applymarker(pytest.mark.xfail(reason=f"belljar warns: {words}", strict=True))
    return jar


@pytest.fixture
def make_jar():
    """make_jar(identity, profile), for a test that is not run four times."""
    with contextlib.ExitStack() as scenes:
        yield lambda identity, profile: Everyday(scenes.enter_context(jars.Scene(identity)), profile)


@pytest.fixture
def need():
    """need("git"): its path, for a guest with the system's PATH; or the test is skipped."""

    def find(*names: str) -> str:
        paths = [shutil.which(name, path=jars.SYSTEM_PATH) for name in names]
        missing = [name for name, path in zip(names, paths) if path is None]
        if missing:
            pytest.skip(f"not installed: {', '.join(missing)}")
        return paths[0]

    return find


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    built = os.environ.get("BELLJAR_COMPAT_PROGRAMS")  # made elsewhere, for want of a compiler
    folder = pathlib.Path(built) if built else tmp_path_factory.mktemp("programs")
    return Programs(pathlib.Path(__file__).parent / "programs", folder, built=bool(built))


@pytest.fixture
def bring(scene, programs):
    """Puts one of programs/ into the workdir; how to call it from there."""

    def put(name: str) -> str:
        try:
            source = programs.path(name)
        except (OSError, subprocess.CalledProcessError) as problem:
            pytest.skip(f"cannot build {name}: {problem}")
        scene.file(name, source.read_bytes(), mode=0o755)
        return f"./{name}"

    return put


@pytest.fixture(scope="session")
def unsorted():
    """Many MB of lines in no order, and the digest of the same lines in order."""
    text = random.Random(1).randbytes((25 << 20) // jars.SLOWER).hex().encode()
    lines = [text[at : at + 100] for at in range(0, len(text), 100)]
    ordered = b"".join(line + b"\n" for line in sorted(lines))
    return b"\n".join(lines) + b"\n", hashlib.sha256(ordered).hexdigest()
