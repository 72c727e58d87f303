"""Fixtures over engine.py, for the tests that run a whole engine. A module imports those that it uses."""

from __future__ import annotations

import pytest

from engine import Engines


@pytest.fixture(scope="module")
def engines():
    made = Engines()
    yield made
    made.close()


@pytest.fixture
def engine(engines, identity, profile):
    """Shared, of this caller and policy."""
    return engines.get(identity, profile)


@pytest.fixture
def plain(engines, identity):
    """Shared, for what a policy cannot matter to."""
    return engines.get(identity, "developer")


@pytest.fixture
def box(engine):
    made = engine.box()
    yield made
    made.close()


@pytest.fixture
def plain_box(plain):
    made = plain.box()
    yield made
    made.close()
