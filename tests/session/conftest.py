"""Workers of every Python that is here."""

from __future__ import annotations

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import worker_driver  # noqa: E402


@pytest.fixture(params=worker_driver.pythons().values(), ids=worker_driver.pythons().keys())
def python(request):
    return request.param


@pytest.fixture
def worker(python):
    with worker_driver.Worker(python) as made:
        yield made
