"""The package as people get it: a wheel, built here, in a fresh environment.

The tests in package/ are the package's own: they are run in that environment, as root and as an
ordinary user, by test_package.py.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "session"))

ROOT = pathlib.Path(__file__).parents[2]
DEBIANS = "/usr/bin/python3"
collect_ignore = ["package"]


TOOLS = ROOT / "build/python-tools"
NEEDED = ["scikit-build-core", "mypy", "pyright"]
# The compiler by its plain name, so that ccache knows what was built by hand, and in other clones.
BUILDING = {"CCACHE_BASEDIR": str(ROOT), "CCACHE_NOHASHDIR": "1", "CC": "cc", "CXX": "c++"}


class Installed:
    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.venv = folder / "venv"
        self.python = self.venv / "bin/python"
        self.package = folder / "package"
        self.wheels = folder / "wheels"


def build(source: pathlib.Path, into: pathlib.Path) -> pathlib.Path:
    """The wheel. Without isolation: for each new environment everything would be built anew."""
    command = ["pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", into, source]
    run(TOOLS / "bin/python", "-m", *command, env={**os.environ, **BUILDING})
    (wheel,) = into.glob("belljar-*.whl")
    return wheel


def run(*command, **more) -> str:
    done = subprocess.run(
        list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=1200, **more
    )
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout[-20000:]}"
    return done.stdout


def _everybody_may_come_to(path: pathlib.Path) -> bool:
    return all(folder.stat().st_mode & 0o001 for folder in (path, *path.parents))


@pytest.fixture(scope="session")
def tools():
    """An environment with what builds and checks, kept for the next time."""
    mark = TOOLS / "complete"
    if not mark.exists() or mark.read_text() != str(NEEDED):
        shutil.rmtree(TOOLS, ignore_errors=True)
        run(DEBIANS, "-m", "venv", TOOLS)
        run(TOOLS / "bin/python", "-m", "pip", "install", "-q", *NEEDED)
        mark.write_text(str(NEEDED))
    return TOOLS / "bin"


@pytest.fixture(scope="session")
def installed(tools):
    """A fresh environment of Debian's Python, with the package, where an ordinary user may come."""
    with contextlib.ExitStack() as clean:
        folder = ROOT / "build/python-tests"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if not _everybody_may_come_to(folder):
            folder = pathlib.Path(tempfile.mkdtemp(prefix="belljar-python-", dir="/var/tmp"))
            clean.callback(shutil.rmtree, folder, ignore_errors=True)
        os.chmod(folder, 0o755)
        made = Installed(folder)
        # Debian's own pytest, pandas and matplotlib are seen in it.
        run(DEBIANS, "-m", "venv", "--system-site-packages", made.venv)
        wheel = build(ROOT / "bindings/python", made.wheels)
        run(made.python, "-m", "pip", "install", "-q", "--no-deps", "--no-index", wheel)
        shutil.copytree(ROOT / "tests/python/package", made.package)
        shutil.copy(ROOT / "examples/notebook.py", made.package)
        yield made


def environment(identity, home: str) -> dict:
    """Of a program that an identity starts."""
    keep = ("BELLJAR_LONG", "BELLJAR_MUST_WORK", "PYTHONDONTWRITEBYTECODE")
    kept = {name: os.environ[name] for name in keep if name in os.environ}
    path = "/usr/local/bin:/usr/bin:/bin"
    return {"HOME": home, "PATH": path, "LANG": "C.UTF-8", "USER": identity.account, **kept}


class OwnTests:
    """The package's own tests, as one identity; they run while others do."""

    def __init__(self, installed: Installed, identity):
        self.place = tempfile.mkdtemp(prefix="python-", dir=identity.folder)
        identity.own(self.place)
        self.log = pathlib.Path(self.place, "log")
        command = [
            installed.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2", "--durations=3", "-rs",
            f"--rootdir={installed.package}", "-c", "/dev/null", f"--basetemp={self.place}/t", installed.package,
        ]  # fmt: skip
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                identity.command(list(map(str, command))), cwd=self.place, env=environment(identity, self.place),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip

    def result(self) -> tuple:
        self.process.wait(timeout=3600)
        return self.process.returncode, self.log.read_text()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.place, ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def own_tests(installed, everyone):
    running = {name: OwnTests(installed, identity) for name, identity in everyone.items()}
    yield running
    for one in running.values():
        one.close()
