"""A server for each identity, and clients for its tokens."""

from __future__ import annotations

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import serving  # noqa: E402


@pytest.fixture
def server(scene):
    with serving.Server(scene) as made:
        yield made


@pytest.fixture
def start(scene):
    """Servers with settings of their own."""
    made = []

    def begin(*flags, **options):
        made.append(serving.Server(scene, *flags, **options))
        return made[-1]

    yield begin
    for each in made:
        each.__exit__()


@pytest.fixture
def ann(server):
    return server.client("ann")


@pytest.fixture
def bob(server):
    return server.client("bob")
