"""The package's own tests: run by any Python that has the package and pytest, as any user."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import time

import pytest

import belljar

PATIENCE = 60  # seconds that anything may take, whatever else the machine does


@pytest.fixture(autouse=True)
def work(tmp_path, monkeypatch):
    """Where each test is: a folder of its own, which is also the workdir of what it runs."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session", autouse=True)
def _nothing_left():
    """A worker of pytest-xdist ends without the ado of an interpreter."""
    yield
    belljar.shutdown()


@pytest.fixture
def program(work):
    """Starts a Python program of its own, so that what it does to itself is not done to us."""
    started = []

    def start(text: str, **more) -> subprocess.Popen:
        path = work / f"program{len(started)}.py"
        path.write_text(text)
        process = subprocess.Popen(
            [sys.executable, str(path)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=work, **more
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def appears(path: pathlib.Path, patience: float = PATIENCE) -> bool:
    end = time.monotonic() + patience
    while time.monotonic() < end:
        if path.exists():
            return True
        time.sleep(0.02)
    return False


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def threads() -> int:
    return len(os.listdir("/proc/self/task"))


def children() -> set:
    found = set()
    for task in pathlib.Path("/proc/self/task").iterdir():
        try:
            found |= set((task / "children").read_text().split())
        except OSError:
            pass
    return found


def resident_kb() -> int:
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0
