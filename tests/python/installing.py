"""Building the wheel, and running things in the environment that it is installed in."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).parents[2]
LONG = os.environ.get("BELLJAR_LONG") == "1"
DEBIANS = "/usr/bin/python3"
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
    """The wheel. Without isolation: for each new environment everything would be built anew.

    The quick tier packages the library that the tests' build has made; the long one compiles it as pip does.
    """
    command = ["pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", into, source]
    if not LONG:
        stripped = ROOT / "build/python-packaged/libbelljar.so"
        stripped.parent.mkdir(parents=True, exist_ok=True)
        run("strip", "--strip-debug", "-o", stripped, ROOT / "build/dev/libbelljar.so")
        settings = [f"build-dir={stripped.parent}/build", f"cmake.define.BELLJAR_PYTHON_LIBRARY={stripped}"]
        command += [f"--config-settings={setting}" for setting in settings]
    run(TOOLS / "bin/python", "-m", *command, env={**os.environ, **BUILDING})
    (wheel,) = into.glob("belljar-*.whl")
    return wheel


def run(*command, **more) -> str:
    done = subprocess.run(
        list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=1200, **more
    )
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout[-20000:]}"
    return done.stdout


def everybody_may_come_to(path: pathlib.Path) -> bool:
    return all(folder.stat().st_mode & 0o001 for folder in (path, *path.parents))


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
