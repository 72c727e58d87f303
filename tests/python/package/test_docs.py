"""What the package says about itself is true."""

from __future__ import annotations

import dataclasses
import doctest
import importlib
import inspect
import pkgutil

import pytest

import belljar
from belljar import _native, _policy

MODULES = ["belljar", *(f"belljar.{one.name}" for one in pkgutil.iter_modules(belljar.__path__))]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_are_true(name):
    found = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert found.failed == 0


def test_there_are_examples():
    finder = doctest.DocTestFinder()
    count = sum(len(one.examples) for name in MODULES for one in finder.find(importlib.import_module(name)))
    assert count > 30


def test_everything_public_has_words():
    silent = [name for name in belljar.__all__ if not inspect.getdoc(getattr(belljar, name))]
    assert silent == []


def test_a_policy_has_every_key_of_the_table_and_no_other():
    keys = {key["name"] for key in _native.ask({"about": "keys"})["keys"]}
    fields = {field.name for field in dataclasses.fields(belljar.SandboxPolicy)}
    assert fields - {"strict"} == keys
    assert set(_policy.PolicyFields.__annotations__) == fields


def test_versions_agree():
    assert _native.ask({"about": "version"})["version"] == belljar.__version__
