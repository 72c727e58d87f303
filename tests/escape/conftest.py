from __future__ import annotations

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import arena  # noqa: E402


def pytest_configure(config):
    config.addinivalue_line("markers", "attack(number, promise, lost): its line in the list of attacks; see arena.py")


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    return arena.built_programs(tmp_path_factory.mktemp("programs"))


@pytest.fixture
def attacker(scene, setting, programs, request):
    mark = request.node.get_closest_marker("attack")
    return arena.Attacker(scene, setting, mark.kwargs["promise"], programs, mark.kwargs["lost"])
