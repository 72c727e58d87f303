"""A server's tokens, audit trail, settings and sockets: no guest of it sees them, though a folder above
is granted."""

from __future__ import annotations

import pytest
import serving

FIND = """
import os
found = ""
for top, folders, names in os.walk({home!r}):
    for name in names:
        try:
            found += open(os.path.join(top, name), errors="replace").read()
        except OSError:
            pass
try:
    open({tokens!r}, "a").write("evil admin evil-token-0123456789abcdef\\n")
except OSError as error:
    pass
print(found)
"""


@pytest.mark.parametrize("grant", ["--extra-read", "--extra-write"])
@pytest.mark.parametrize("where", ["usual", "named"])
def test_a_guest_finds_no_token_and_adds_none(scene, grant, where):
    secret = scene.secret(scene.home / "notes/readable")
    state = scene.folder(scene.home / ".local/state")
    flags = [f"{grant}={scene.home}"]
    how = {"own_state": str(state)} if where == "usual" else {"audit": str(scene.home / "audit.jsonl")}
    if where == "usual":
        lines = "".join(f"{name} {scopes} {token}\n" for name, (scopes, token) in serving.TOKENS.items())
        tokens = scene.file(state / "belljar/tokens", lines, 0o600)
        tokens.parent.chmod(0o700)
    with serving.Server(scene, *flags, **how) as server:
        tokens = tokens if where == "usual" else server.token_file
        before = tokens.read_text()
        ann = server.client("ann")
        session = ann.session()
        assert ann.python(session, "1 + 1")["result"] == "2"
        said = ann.python(session, FIND.format(home=str(scene.home), tokens=str(tokens)))["stdout"]
        assert secret in said, "the control: what is granted is read"
        for name, (_, token) in serving.TOKENS.items():
            assert token not in said, f"the guest reads {name}'s token"
        assert '"tool"' not in said, "the guest reads the audit trail"
        assert tokens.read_text() == before
