"""A policy under which sessions reach each other's files needs a word of the operator's."""

from __future__ import annotations

import pytest

FLAG = "--no-tenant-isolation"


@pytest.mark.parametrize("flags, profile", [
    ([], "open"),
    (["--deny-net"], "open"),
    (["--deny-write"], "open"),
    (["--extra-write=/tmp"], "developer"),
    (["--extra-read=/tmp"], "developer"),
])  # fmt: skip
def test_it_is_refused_and_says_what_to_do(start, flags, profile):
    with pytest.raises(RuntimeError) as refused:
        start(*flags, profile=profile)
    assert "a session can reach the files of all others" in str(refused.value)
    assert FLAG in str(refused.value)


@pytest.mark.parametrize("profile", ["developer", "restricted"])
def test_other_policies_need_no_flag(start, profile):
    server = start("--extra-read=/usr/share", profile=profile)
    assert "tenant" not in server.errors()


def test_with_the_flag_it_is_said_and_so_it_is(start):
    """The control: what the flag is about does happen."""
    server = start(FLAG, profile="open")
    assert "a session can reach the files of all others" in server.errors() and FLAG in server.errors()
    ann, bob = server.client("ann"), server.client("bob")
    his, hers = bob.session(), ann.session()
    left = bob.post(f"/v1/sessions/{his}/shell", commands=["umask 0; echo secret > kept; chmod 777 .; pwd"]).json
    folder = left["stdout"].strip()
    answer = ann.post(f"/v1/sessions/{hers}/shell", commands=[f"cat {folder}/kept"]).json
    assert answer["stdout"] == "secret\n", answer
