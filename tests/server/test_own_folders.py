"""Tokens and the audit trail are no guest's to read or change, whatever folder above them is granted."""

from __future__ import annotations

import signal

import pytest
import serving

NEW = "mallory admin mallory-token-0123456789abcdef"


@pytest.fixture(params=["--extra-read", "--extra-write"])
def flag(request):
    return request.param


@pytest.fixture(params=["usual", "named"])
def granted(request, flag, start, scene):
    """A server whose tokens lie in a folder that its guests may use: where they are when nothing is said of them, with
    the audit trail, or where a flag says."""
    above = scene.home / "above"
    state = above / "state"
    (state / "belljar").mkdir(parents=True, mode=0o700)
    tokens = state / "belljar/tokens"
    tokens.write_text("".join(f"{name} {scopes} {token}\n" for name, (scopes, token) in serving.TOKENS.items()))
    tokens.chmod(0o600)
    (above / "plain").write_text("for all")
    scene.identity.own(above, state, state / "belljar", tokens, above / "plain")
    if request.param == "usual":
        server = start(f"{flag}={above}", own_state=str(state))
    else:
        named = above / "named"
        named.mkdir()
        tokens = tokens.rename(named / "my-tokens")
        scene.identity.own(named)
        server = start(f"{flag}={above}", f"--token-file={tokens}")
    server.above, server.tokens, server.writes = above, tokens, flag.endswith("write")
    return server


def run(client, command: str) -> dict:
    return client.post(f"/v1/sessions/{client.session()}/shell", commands=[command]).json


def test_a_guest_does_not_read_them(granted):
    ann = granted.client("ann")
    assert run(ann, f"cat {granted.above}/plain")["stdout"] == "for all", "the control"
    if granted.tokens.name == "tokens":
        assert any('"principal"' in path.read_text() for path in granted.above.rglob("*.jsonl")), "the control"
    said = run(ann, f"find {granted.above} -type f -exec cat {{}} +; cat {granted.tokens} {granted.tokens.parent}/*")
    assert serving.TOKENS["boss"][1] not in said["stdout"], said
    assert '"principal"' not in said["stdout"], said


def test_a_guest_does_not_become_an_administrator(granted):
    ann = granted.client("ann")
    run(ann, f"umask 077; echo '{NEW}' >> {granted.tokens}; mv {granted.tokens.parent} {granted.above}/away; "
             f"mkdir -p {granted.tokens.parent} && echo '{NEW}' > {granted.tokens}")  # fmt: skip
    made = run(ann, f"echo more > {granted.above}/made")
    assert (made["status"] == "success") == granted.writes, "the control"
    granted.signal(signal.SIGHUP)
    assert serving.wait_until(lambda: "read again" in granted.errors() or "nothing is changed" in granted.errors())
    assert serving.Client(granted, NEW.split()[2]).get("/v1/sessions").status == 401
    assert "mallory" not in granted.tokens.read_text()
