from __future__ import annotations

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import arena  # noqa: E402


def pytest_configure(config):
    config.addinivalue_line("markers", "attack(number, promise, control, profiles): see arena.attack")


def pytest_generate_tests(metafunc):
    mark = metafunc.definition.get_closest_marker("attack")
    if mark:
        metafunc.parametrize(("identity", "setting"), arena.settings(mark), indirect=["identity"])


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    return arena.built_programs(tmp_path_factory.mktemp("programs"))


@pytest.fixture
def attacker(scene, setting, programs, request):
    mark = request.node.get_closest_marker("attack")
    return arena.Attacker(scene, setting, mark.kwargs["promise"], programs)
