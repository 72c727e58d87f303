"""The package as people get it: a wheel, built here, in a fresh environment.

The tests in package/ are the package's own: they are run in that environment, as root and as an
ordinary user, by test_package.py.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import sys
import tempfile

import pytest

sys.path[:0] = [str(pathlib.Path(__file__).parent), str(pathlib.Path(__file__).parents[1] / "session")]

from installing import DEBIANS, NEEDED, ROOT, TOOLS, Installed, OwnTests, build, everybody_may_come_to, run  # noqa: E402

collect_ignore = ["package"]


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
        if not everybody_may_come_to(folder):
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


@pytest.fixture(scope="session", autouse=True)
def own_tests(installed, everyone):
    running = {name: OwnTests(installed, identity) for name, identity in everyone.items()}
    yield running
    for one in running.values():
        one.close()
