"""Fixtures of every suite that runs belljar. The parts are in support/jar.py."""

from __future__ import annotations

import os
import pathlib
import signal
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent / "support"))

import jar as jars  # noqa: E402

# Started by nohup or in the background, signals are ignored, and whatever a test starts
# would ignore them too.
for ignored in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
    if signal.getsignal(ignored) == signal.SIG_IGN:
        signal.signal(ignored, signal.SIG_DFL)


@pytest.fixture(scope="session")
def everyone():
    with jars.identities() as found:
        yield found


@pytest.fixture(params=["root", "user"])
def identity(request, everyone):
    if request.param not in everyone:
        pytest.skip(f"needs to be started by root to be {request.param}")
    return everyone[request.param]


@pytest.hookimpl(hookwrapper=True)
def pytest_pyfunc_call():
    """Where a host refuses its caller, the refusal is what a test comes to, and checks."""
    outcome = yield
    if outcome.excinfo and issubclass(outcome.excinfo[0], jars.RefusedAsExpected):
        outcome.force_result(True)


@pytest.fixture(params=jars.PROFILES)
def profile(request):
    return request.param


@pytest.fixture
def scene(identity):
    with jars.Scene(identity) as made:
        yield made


@pytest.fixture
def jar(scene, profile):
    return jars.Jar(scene, profile)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Where everything must work (CI), a skip is a failure."""
    result = yield
    report = result.get_result()
    if report.skipped and os.environ.get("BELLJAR_MUST_WORK") == "1" and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, and BELLJAR_MUST_WORK=1: {report.longrepr}"
