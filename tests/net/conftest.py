"""Fixtures of the network tests. network.py is the internet they run in; services.py what is there.

Debian packages that they need (./test installs them): curl default-jdk-headless dropbear-bin git
golang-go iproute2 musl-tools nghttp2-server nodejs npm openssh-client openssl python3-pip
python3-requests redis-tools util-linux wget. To make namespaces the tests are started by root.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import sys

import pytest

FOLDER = pathlib.Path(__file__).parent
sys.path.insert(0, str(FOLDER))
sys.path.insert(0, str(FOLDER.parent / "escape"))

import arena  # noqa: E402
import network as networks  # noqa: E402
from programs import Programs  # noqa: E402
from services import Services  # noqa: E402
from wired import Attacker, Wired  # noqa: E402


def pytest_configure(config):
    config.addinivalue_line("markers", "attack(number, promise): its line in the list of attacks; see arena.py")


@pytest.fixture(scope="session")
def network():
    if os.geteuid() != 0:
        pytest.skip("needs to be started by root to make a network")
    made = networks.Network()
    yield made
    made.close()


@pytest.fixture(scope="session")
def services(network, everyone):
    return Services(network, everyone["user"])


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    return Programs(FOLDER / "programs", tmp_path_factory.mktemp("programs"))


@pytest.fixture
def wired(scene, network, services, programs):
    """A scene with a cable."""
    return Wired(scene, network, services, programs)


@pytest.fixture
def attacker(scene, network, services, programs, setting, request):
    mark = request.node.get_closest_marker("attack")
    return Attacker(scene, network, services, setting, mark.kwargs["promise"], programs)


@pytest.fixture(scope="session")
def need():
    """need("git"): its path; or the test is skipped."""

    def find(*names: str) -> str:
        where = jars_path()
        missing = [name for name in names if shutil.which(name, path=where) is None]
        if missing:
            pytest.skip(f"not installed: {', '.join(missing)}")
        return shutil.which(names[0], path=where)

    def jars_path() -> str:
        return f"{arena.jars.SYSTEM_PATH}:/usr/local/go/bin"

    return find
